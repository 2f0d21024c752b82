# Completion of spate-httpd for bash: a directory, and the options.

_spate_httpd() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  local options='--port --listing --hidden --workers --cache --log --inspect --version --help'
  COMPREPLY=()
  # A number or an address follows. Bash splits an address at its colon.
  [[ $before == @(--port|--workers|--cache|--inspect|:) || $current == : ]] && return
  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -d -- "$current")
  fi
}

complete -o filenames -F _spate_httpd spate-httpd
