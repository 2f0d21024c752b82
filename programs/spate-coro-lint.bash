# Completion of spate-coro-lint for bash: files, and the options.

_spate_coro_lint() {
  local current=${COMP_WORDS[COMP_CWORD]}
  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W '--help' -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  fi
}

complete -o filenames -F _spate_coro_lint spate-coro-lint
