"""The files that the command reads before the server starts: variables and the setup of logging."""

import configparser
import json
import logging
import logging.config
import os
import sys

from .config import ConfigError


def require(path):
    if not os.path.isfile(path):
        raise ConfigError(f"there is no file {path}")


def read_environment(path):
    """Sets the variables of a file that the environment does not have yet."""
    try:
        import dotenv
    except ImportError:
        raise ConfigError("--env-file needs the package python-dotenv: "
                          "pip install python-dotenv") from None
    require(path)
    dotenv.load_dotenv(path)


def configure_logs(path, level):
    """Configures logging by a file, or else writes messages of this level to the standard error."""
    if path is None:
        logging.basicConfig(stream=sys.stderr, level=level.upper(),
                            format="%(levelname)s: %(message)s")
        return
    require(path)
    try:
        if path.endswith((".json", ".yaml", ".yml")):
            # Without the key, dictConfig() would disable the server's loggers.
            logging.config.dictConfig({"disable_existing_loggers": False} | read_dictionary(path))
        else:
            logging.config.fileConfig(path, disable_existing_loggers=False)
    except (ValueError, TypeError, KeyError, AttributeError, RuntimeError,
            configparser.Error) as error:
        reason = f": {error.__cause__}" if error.__cause__ else ""
        raise ConfigError(f"{path} does not configure logging: {error}{reason}") from None


def read_dictionary(path):
    with open(path, encoding="utf-8") as file:
        if path.endswith(".json"):
            return json.load(file)
        try:
            import yaml
        except ImportError:
            raise ConfigError(f"{path} needs the package PyYAML: pip install PyYAML") from None
        try:
            return yaml.safe_load(file)
        except yaml.YAMLError as error:
            raise ValueError(error) from None
