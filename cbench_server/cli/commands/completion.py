"""`cbench completion`: what a shell needs to complete commands, flags and names."""

import argparse

from cbench_server.cli.exits import OK

_BASH = """\
_cbench() {
  local line="${COMP_LINE:0:COMP_POINT}" each
  COMPREPLY=()
  while IFS= read -r each; do
    COMPREPLY+=("$each")
    # A value after = is not over yet.
    case "$each" in *=) compopt -o nospace 2>/dev/null ;; esac
  done < <(cbench completion bash --line "$line" 2>/dev/null)
}
complete -o default -F _cbench cbench
"""
_ZSH = """\
#compdef cbench
_cbench() {
  local -a found
  found=("${(@f)$(cbench completion zsh --line "$LBUFFER" 2>/dev/null)}")
  if [[ -n "${found[1]}" ]]; then
    compadd -S '' -- ${(M)found:#*=}
    compadd -- ${found:#*=}
  else
    _files
  fi
}
compdef _cbench cbench
"""
_FISH = """\
function __cbench_complete
  set -l line (commandline --cut-at-cursor | string collect)
  set -l found (cbench completion fish --line $line 2>/dev/null)
  if set -q found[1]
    string join \\n -- $found
  else
    __fish_complete_path (commandline --current-token --cut-at-cursor)
  end
end
complete -c cbench -f -a '(__cbench_complete)'
"""
_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench completion`."""
    parser.set_defaults(handler=completion)
    parser.epilog = (
        'bash: add to ~/.bashrc    eval "$(cbench completion bash)"\n'
        'zsh:  add to ~/.zshrc     eval "$(cbench completion zsh)"   (after compinit)\n'
        "fish: cbench completion fish > ~/.config/fish/completions/cbench.fish"
    )
    parser.add_argument("shell", choices=tuple(_SCRIPTS), metavar="SHELL", help="bash, zsh or fish")
    parser.add_argument(
        "--line",
        metavar="TEXT",
        help="print what the end of this line can become, one per line, as the script asks",
    )


def completion(args: argparse.Namespace) -> int:
    """Print the script, or answer it."""
    if args.line is None:
        print(_SCRIPTS[args.shell], end="")
        return OK
    from cbench_server.cli.completion import split_line, suggest

    words = split_line(args.line)
    for each in suggest(words, args.build):
        print(_without_what_bash_has(each, words[-1]) if args.shell == "bash" else each)
    return OK


def _without_what_bash_has(suggestion: str, typed: str) -> str:
    """Leave out what is before the last `=` or `:` typed, where bash begins a new word."""
    kept = max(typed.rfind("="), typed.rfind(":")) + 1
    return suggestion[kept:]
