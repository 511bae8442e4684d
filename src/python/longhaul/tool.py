"""The commands of the tool `longhaul` as functions, in the process of the caller (docs/install.md):

    from longhaul import tool
    advice = tool.advise("benchmarks/scenarios/dp-2dc.toml", search_moves=2000)
    print(advice["plans"][0]["iteration_ns"])

Each takes the words of its command, and its options by name: `search_moves=2000` is `--search-moves 2000`,
`extrapolate=True` a flag, a list repeats an option, and a dict of `set` is its values. "profile needed" is
profile_needed(), "rule model" rule_model(). The answer is the document that --json prints. Throws longhaul.Error,
worded as the tool words it.
"""

import json

import longhaul


class Answer(dict):
    """The document of --json; `yes` is False where the command ends with exit code 1 (a check that failed)."""

    yes = True


def words_of(name, value):
    """An option on the command line. A trailing _ is Python's: from_=."""
    option = "--" + name.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return []
    if value is True:
        return [option]
    if isinstance(value, dict):
        value = [f"{path}={item}" for path, item in value.items()]
    if isinstance(value, (list, tuple)):
        return [word for item in value for word in (option, str(item))]
    return [option, str(value)]


def ask(command, *words, **options):
    """The answer of a command, by its name as the tool has it: ask("trace summary", "run.h5")."""
    typed = [*command.split(), *map(str, words)]
    for name, value in options.items():
        typed += words_of(name, value)
    text, yes = longhaul.ask(typed)
    answer = Answer(json.loads(text))
    answer.yes = yes
    return answer


def names():
    """By function name the command's."""
    return {command.replace(" ", "_").replace("-", "_"): command for command in longhaul.commands()}


def __getattr__(name):
    if name.startswith("_") or name not in names():
        raise AttributeError(f"longhaul has no command '{name.replace('_', ' ')}'")
    command = names()[name]

    def call(*words, **options):
        return ask(command, *words, **options)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`longhaul {command} --json`; `longhaul help {command}` says what it takes."
    return call


def __dir__():
    return sorted({*globals(), *names()})
