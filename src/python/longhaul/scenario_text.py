"""What Python needs to know of a scenario: its name, its ranks, the delay ratios of its links. The text
is TOML; traces and records append the overrides to it, as comments `# --set PATH=VALUE`."""

import math
import re
import shlex
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

from longhaul.errors import Failure

UNKNOWN = "-"  # a ratio that was not given


def parsed(text):
    """The tables of a scenario; none where it is no TOML."""
    try:
        return tomllib.loads(str(text))
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def overrides_in(text):
    """{path: value} of the overrides that a trace or a record keeps with a scenario."""
    pairs = re.findall(r"^# --set ([^\s=]+)\s*=\s*(.*)$", str(text), re.MULTILINE)
    return {path: value.strip() for path, value in pairs}


def without_overrides(text):
    """A scenario's file as a run's text begins with it: such comments in it are not kept."""
    return re.sub(r"^# --(?:set|change) [^\n]*\n?", "", str(text), flags=re.MULTILINE)


def name_of(text, command=""):
    """The scenario's name; without one that of the file that `command` names, as for our programs; ""
    where neither is known."""
    text = str(text)
    if name := overrides_in(text).get("scenario.name"):
        return name.strip("\"'")
    section = parsed(text).get("scenario")
    name = section.get("name") if isinstance(section, dict) else None
    return name if isinstance(name, str) and name else _file_name(command)


def _file_name(command):
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    return next((Path(word).stem for word in words if word.endswith(".toml")), "")


def number(value):
    """NaN for what is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def setting(text, section, key, overrides=()):
    """A number of the scenario: of `overrides` ({path: value}), of those in the text, of its section;
    NaN where none has it. Of links, nodes and datacenters: the value that all of them share."""
    path = f"{section}.{key}"
    for given in (dict(overrides), overrides_in(text)):
        if path in given:
            return number(given[path])
    found = parsed(text).get(section, {})
    values = {number(each.get(key)) for each in (found if isinstance(found, list) else [found])
              if isinstance(each, dict)}
    return values.pop() if len(values) == 1 else math.nan


def ratio_text(ratio):
    """'0.25', or '-' for one that was not given."""
    return UNKNOWN if ratio is None or math.isnan(ratio) else f"{ratio:g}"


def ranks_of(file, overrides=()):
    """tensor * stages * replicas of a scenario's file, as `--set` changes them, and its services'."""
    tables = _tables_of(file)
    ranks = product_of(file, ("stages", "replicas", "tensor"), overrides)
    services = tables.get("service", [])
    for service in services if isinstance(services, list) else []:
        count = service.get("count", 1) if isinstance(service, dict) else 1
        if not re.fullmatch(r"[1-9][0-9]{0,6}", str(count)):
            raise Failure(f"{file}: service.count = {count} is no number of ranks. Correct it.")
        ranks += int(count)
    return ranks


def datacenters_of(file):
    """How many [[datacenter]] a scenario's file has."""
    datacenters = _tables_of(file).get("datacenter", [])
    return len(datacenters) if isinstance(datacenters, list) else 0


def product_of(file, keys, overrides=()):
    """The product of counts of `[parallel]` in a scenario's file, as `--set` changes them."""
    section = _tables_of(file).get("parallel")
    section = section if isinstance(section, dict) else {}
    product = 1
    for key in keys:
        value = section.get(key, 1)
        for override in overrides:
            if match := re.fullmatch(rf"\s*parallel\.{key}\s*=\s*(\S+)\s*", override):
                value = match[1]
        if not re.fullmatch(r"[1-9][0-9]{0,6}", str(value)):
            raise Failure(f"{file}: parallel.{key} = {value} is no number of ranks. Correct it.")
        product *= int(value)
    return product


def _tables_of(file):
    try:
        return tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise Failure(f"cannot read {file} ({error.strerror}). Give a .toml file.") from error
    except (ValueError, RecursionError) as error:
        raise Failure(f"{file}: not TOML ({error}). longhaul check says more.") from error
