"""Completion of options and commands in a shell, made from what --help of our programs and scripts says:

    scripts/completion bash >~/.local/share/bash-completion/completions/longhaul
    scripts/completion zsh >~/.zfunc/_longhaul.zsh    # and: source it in ~/.zshrc

bash loads the first by itself for the command longhaul; source it in ~/.bashrc for all others. Files
complete wherever no option or command does."""

import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from longhaul import progress
from longhaul.commands.figure import parser_of
from longhaul.errors import Failure, guarded
from longhaul.figures.registry import FIGURES
from longhaul.running import tools

TIME_S = 120
# Both shells: the words before the cursor that are neither options nor files choose the list.
SHELLS = {
    "bash": """\
# Made by scripts/completion bash.
_longhaul_words() {{
  case $1 in
{cases}
  esac
}}
_longhaul_complete() {{
  local name=${{COMP_WORDS[0]##*/}} key words i
  key=$name
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if [[ -n $(_longhaul_words "$key ${{COMP_WORDS[i]}}") ]]; then key+=" ${{COMP_WORDS[i]}}"; fi
  done
  words=$(_longhaul_words "$key")
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}")
}}
complete -o default -o bashdefault -F _longhaul_complete {commands}
""",
    "zsh": """\
# Made by scripts/completion zsh.
_longhaul_words() {{
  case $1 in
{cases}
  esac
}}
_longhaul_complete() {{
  local key=${{words[1]:t}} i
  for ((i = 2; i < CURRENT; ++i)); do
    if [[ -n $(_longhaul_words "$key ${{words[i]}}") ]]; then key+=" ${{words[i]}}"; fi
  done
  compadd -- ${{=$(_longhaul_words "$key")}}
  _files
}}
(( $+functions[compdef] )) || {{ autoload -Uz compinit && compinit; }}
compdef _longhaul_complete {commands}
"""}


def help_of(command):
    """What it says; "" where it cannot be asked."""
    try:
        done = subprocess.run([*map(str, command), "--help"], capture_output=True, text=True,
                              check=False, stdin=subprocess.DEVNULL, timeout=TIME_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def options_in(text):
    """Options that a help text lists, in its order: where a line begins with them, or in the usage."""
    begins = re.findall(r"^ +(-[^ ].*?)(?:  |$)", text, re.MULTILINE)
    usage = re.findall(r"[(|\[] ?(--?[a-z][\w-]*)", text)
    words = [word for part in begins for word in re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", part)]
    return list(dict.fromkeys([*words, *usage]))


def commands_in(text):
    """Commands that a help text of ours lists below Subcommands."""
    section = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.MULTILINE)
    return re.findall(r"^  (\S+)", section[1], re.MULTILINE) if section else []


def programs():
    """Of build/bin that have options of ours."""
    directory = tools.binary("longhaul").parent
    return [path for path in sorted(directory.iterdir())
            if re.fullmatch(r"longhaul|bench_[a-z]+|wan_tun", path.name) and os.access(path, os.X_OK)]


def scripts():
    return [path for path in sorted([*(tools.ROOT / "scripts").iterdir(), tools.ROOT / "slurm/submit"])
            if path.is_file() and os.access(path, os.X_OK)]


def below(command, key):
    """[(key, words)] of a program and the commands below it."""
    text = help_of(command)
    names = commands_in(text)
    found = [(key, [*names, *options_in(text)])]
    for name in names:
        found += below([*command, name], f"{key} {name}")
    return found


def lists():
    """{words before the cursor: words that may follow}."""
    asked = [([path], path.name) for path in (*programs(), *scripts())]
    # A start of Python for each figure takes too long: what --help prints is made here.
    found = {f"figure {name}": options_in(parser_of(name).format_help()) for name in FIGURES}
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        for number, lines in enumerate(pool.map(lambda one: below(*one), asked), 1):
            progress.step(f"help text {number} of {len(asked)}")
            found.update({key: words for key, words in lines if words})
    found["figure"] = [*FIGURES, *found.get("figure", [])]
    found["reproduce"] = ["atlas", "crosspipe", *found.get("reproduce", [])]
    found["submit"] = ["pipeline", "sweep", "figures", *found.get("submit", [])]
    return found


def script_for(shell, found):
    """Scripts have names that others have too (test): they complete as they are typed, scripts/test."""
    cases = "\n".join(f"    '{key}') echo '{' '.join(words)}' ;;" for key, words in found.items())
    commands = [path.name for path in programs()]
    for path in scripts():
        place = path.relative_to(tools.ROOT)
        commands += [str(place), f"./{place}"]
    return SHELLS[shell].format(cases=cases, commands=" ".join(commands))


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="scripts/completion", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shell", choices=sorted(SHELLS))
    shell = parser.parse_args(arguments).shell
    found = lists()
    if "longhaul simulate" not in found:
        raise Failure("longhaul --help lists no commands (of another version). Run scripts/build.")
    print(script_for(shell, found), end="")
    return 0


if __name__ == "__main__":
    sys.exit(guarded(main, "completion"))
