"""What an author's settings have wrong, found before any of it is used, and told all at once.

Nothing here is a user's doing: that is `knobs.SettingsError`.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from pydantic import BaseModel, ValidationError

from operator_runtime.config import RuntimeConfig
from operator_runtime.process.knobs import misfit, mistakes_of, options_of
from operator_runtime.process.settings import RuntimeSettings


def refuse_mistakes(model: object, config: object) -> None:
    """Let settings pass that make a program together with the config that its operator is given.

    Args:
        model: should be a subclass of RuntimeSettings.
        config: should be a subclass of RuntimeConfig with the same fields.

    Raises:
        TypeError: they do not; the message has a line for each mistake, with the setting's name and what to write.
    """
    mistakes = []
    if not (isinstance(model, type) and issubclass(model, RuntimeSettings)):
        mistakes.append(f"settings={model!r} is no subclass of RuntimeSettings")
    if not (isinstance(config, type) and issubclass(config, RuntimeConfig)):
        mistakes.append(f"config={config!r} is no subclass of RuntimeConfig")
    if not mistakes:
        assert isinstance(model, type)
        assert isinstance(config, type)
        mistakes = [*mistakes_of(model), *_differing(model, config)]
        mistakes = mistakes or list(_wrong_defaults(model, config))
    if mistakes:
        raise TypeError("\n".join(mistakes))


def _differing(model: type[RuntimeSettings], config: type[RuntimeConfig]) -> Iterator[str]:
    """Fields that one of the two lacks."""
    ours, theirs = set(model.model_fields), set(config.__struct_fields__)
    if ours == theirs:
        return
    remedies = []
    for lacking, parameter, base, names in (
        (config, "config", RuntimeConfig, ours - theirs),
        (model, "settings", RuntimeSettings, theirs - ours),
    ):
        listed = ", ".join(sorted(names))
        if names and lacking is base:
            remedies.append(f"give {parameter}= a subclass of {base.__name__} that has {listed}")
        elif names:
            remedies.append(f"write {listed} into {lacking.__name__}")
    yield (
        f"the settings {model.__name__} and the config {config.__name__} must have the same fields; "
        f"only one of them has {', '.join(sorted(ours ^ theirs))}: {', and '.join(remedies)}"
    )


def _wrong_defaults(model: type[RuntimeSettings], config: type[RuntimeConfig]) -> Iterator[str]:
    """Defaults that the settings forbid themselves, or that the config takes for something else."""
    defaults = model.__new__(model)
    try:
        # Not that of BaseSettings, which reads the environment: a user's value is not looked at here.
        BaseModel.__init__(defaults)
    except ValidationError as error:
        allowed = {option.name: option.allowed for option in options_of(model)}
        for detail in error.errors(include_url=False):
            if not detail["loc"]:
                yield from (f"the defaults of {model.__name__} do not fit: {said}" for said in misfit(detail))
                continue
            name = str(detail["loc"][0])
            yield (
                f"the setting {name} has the default {detail['input']!r}, which it does not allow itself: "
                f"it must be {allowed[name]}"
            )
        return
    written = msgspec.json.decode(defaults.model_dump_json(), type=dict[str, msgspec.Raw])
    for field in msgspec.structs.fields(config):
        try:
            msgspec.json.decode(written[field.name], type=field.type)
        except msgspec.ValidationError as error:
            yield (
                f"the setting {field.name} has another type in the config {config.__name__} than in the settings "
                f"{model.__name__}, whose default is {bytes(written[field.name]).decode()} there: {error}"
            )
