from cbench_client._gen.cbench.v1 import example_pb2 as _example_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class OptionType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OPTION_TYPE_UNSPECIFIED: _ClassVar[OptionType]
    OPTION_TYPE_BOOL: _ClassVar[OptionType]
    OPTION_TYPE_INTEGER: _ClassVar[OptionType]
    OPTION_TYPE_NUMBER: _ClassVar[OptionType]
    OPTION_TYPE_TEXT: _ClassVar[OptionType]
    OPTION_TYPE_LIST: _ClassVar[OptionType]
    OPTION_TYPE_MAP: _ClassVar[OptionType]
OPTION_TYPE_UNSPECIFIED: OptionType
OPTION_TYPE_BOOL: OptionType
OPTION_TYPE_INTEGER: OptionType
OPTION_TYPE_NUMBER: OptionType
OPTION_TYPE_TEXT: OptionType
OPTION_TYPE_LIST: OptionType
OPTION_TYPE_MAP: OptionType

class DeclaredOptions(_message.Message):
    __slots__ = ("options", "accepts_others")
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    ACCEPTS_OTHERS_FIELD_NUMBER: _ClassVar[int]
    options: _containers.RepeatedCompositeFieldContainer[OptionInfo]
    accepts_others: bool
    def __init__(self, options: _Optional[_Iterable[_Union[OptionInfo, _Mapping]]] = ..., accepts_others: bool = ...) -> None: ...

class OptionInfo(_message.Message):
    __slots__ = ("name", "type", "description", "default_value", "required", "minimum", "maximum", "choices", "nullable")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_FIELD_NUMBER: _ClassVar[int]
    MAXIMUM_FIELD_NUMBER: _ClassVar[int]
    CHOICES_FIELD_NUMBER: _ClassVar[int]
    NULLABLE_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: OptionType
    description: str
    default_value: _example_pb2.Value
    required: bool
    minimum: float
    maximum: float
    choices: _containers.RepeatedCompositeFieldContainer[_example_pb2.Value]
    nullable: bool
    def __init__(self, name: _Optional[str] = ..., type: _Optional[_Union[OptionType, str]] = ..., description: _Optional[str] = ..., default_value: _Optional[_Union[_example_pb2.Value, _Mapping]] = ..., required: bool = ..., minimum: _Optional[float] = ..., maximum: _Optional[float] = ..., choices: _Optional[_Iterable[_Union[_example_pb2.Value, _Mapping]]] = ..., nullable: bool = ...) -> None: ...
