# Completion of spate-run for bash: its own options, then a program and that program's arguments.

_spate_run() {
  local current=${COMP_WORDS[COMP_CWORD]} word at
  COMPREPLY=()
  for ((at = 1; at < COMP_CWORD; at++)); do
    word=${COMP_WORDS[at]}
    [[ $word == -- ]] && ((at++)) && break
    [[ $word == -* ]] || break
  done
  if ((at < COMP_CWORD)); then
    _spate_run_arguments "$at" "$current"
  elif [[ $current == -* && ${COMP_WORDS[at - 1]} != -- ]]; then
    mapfile -t COMPREPLY < <(compgen -W '--quiet --force --help -q -f -h --' -- "$current")
  else
    # Names in PATH, and files, since some programs are not in it.
    mapfile -t COMPREPLY < <(compgen -c -- "$current"; compgen -d -S / -- "$current")
  fi
}

# Completes as for the program itself, if bash-completion is installed.
_spate_run_arguments() {  # INDEX-OF-PROGRAM CURRENT
  local helper
  for helper in _comp_command_offset _command_offset; do
    if declare -F "$helper" >/dev/null; then
      "$helper" "$1"
      return
    fi
  done
  mapfile -t COMPREPLY < <(compgen -f -- "$2")
}

complete -F _spate_run spate-run
