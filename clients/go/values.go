package cbench

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"unicode/utf8"

	pb "github.com/cbench/cbench-server/clients/go/cbenchpb"
)

// maxDepth is how deep lists and maps may nest on the wire.
const maxDepth = 30

// UnencodableError says which value cannot cross the wire without loss, and why.
type UnencodableError struct {
	// Field is where the value is, such as `choices[2]`.
	Field string
	// Problem is what is wrong with it, with the way out.
	Problem string
}

func (e *UnencodableError) Error() string {
	return fmt.Sprintf("field %q %s", e.Field, e.Problem)
}

// EncodeFields turns Go values into what messages of the protocol hold, such as
// the options of a [cbenchpb.SystemRef]. The error is an [*UnencodableError].
func EncodeFields(fields map[string]any) (map[string]*pb.Value, error) {
	return encodeFields(fields, "", 0)
}

// DecodeFields turns what messages of the protocol hold into Go values: nil,
// bool, int64, float64, string, []byte, []any and map[string]any.
func DecodeFields(fields map[string]*pb.Value) (map[string]any, error) {
	return decodeFields(fields, "", 0)
}

func encodeFields(fields map[string]any, path string, depth int) (map[string]*pb.Value, error) {
	encoded := make(map[string]*pb.Value, len(fields))
	for name, value := range fields {
		if !utf8.ValidString(name) {
			return nil, notText(path + strconv.QuoteToASCII(name))
		}
		message, err := encodeValue(value, path+name, depth)
		if err != nil {
			return nil, err
		}
		encoded[name] = message
	}
	return encoded, nil
}

func encodeValue(value any, path string, depth int) (*pb.Value, error) {
	switch value := value.(type) {
	case nil:
		return &pb.Value{Kind: &pb.Value_NullValue{NullValue: true}}, nil
	case string:
		return encodeText(value, path)
	case bool:
		return &pb.Value{Kind: &pb.Value_BoolValue{BoolValue: value}}, nil
	case int:
		return integer(int64(value)), nil
	case int64:
		return integer(value), nil
	case float64:
		return &pb.Value{Kind: &pb.Value_DoubleValue{DoubleValue: value}}, nil
	case []byte:
		return &pb.Value{Kind: &pb.Value_BytesValue{BytesValue: value}}, nil
	case map[string]any:
		return encodeMap(value, path, depth)
	}
	return encodeOther(reflect.ValueOf(value), path, depth)
}

// encodeOther takes the less usual types: sized numbers, named types, typed slices and maps.
func encodeOther(value reflect.Value, path string, depth int) (*pb.Value, error) {
	switch value.Kind() {
	case reflect.String:
		return encodeText(value.String(), path)
	case reflect.Bool:
		return encodeValue(value.Bool(), path, depth)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return integer(value.Int()), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		if value.Uint() > math.MaxInt64 {
			problem := fmt.Sprintf("holds %d, and integers cross the wire only up to 2^63-1. Send it as text.", value.Uint())
			return nil, &UnencodableError{path, problem}
		}
		return integer(int64(value.Uint())), nil
	case reflect.Float32, reflect.Float64:
		return encodeValue(value.Float(), path, depth)
	case reflect.Slice, reflect.Array:
		return encodeList(value, path, depth)
	case reflect.Map:
		if value.Type().Key().Kind() == reflect.String {
			fields := make(map[string]any, value.Len())
			for entry := value.MapRange(); entry.Next(); {
				fields[entry.Key().String()] = entry.Value().Interface()
			}
			return encodeMap(fields, path, depth)
		}
	}
	problem := fmt.Sprintf("holds a %s, which cannot cross the wire. Send text, numbers, bytes, slices or string-keyed maps.", value.Type())
	return nil, &UnencodableError{path, problem}
}

func integer(value int64) *pb.Value {
	return &pb.Value{Kind: &pb.Value_IntValue{IntValue: value}}
}

func encodeText(text, path string) (*pb.Value, error) {
	if !utf8.ValidString(text) {
		return nil, notText(path)
	}
	return &pb.Value{Kind: &pb.Value_StringValue{StringValue: text}}, nil
}

func encodeList(list reflect.Value, path string, depth int) (*pb.Value, error) {
	if depth >= maxDepth {
		return nil, tooDeep(path)
	}
	if list.Kind() == reflect.Slice && list.Type().Elem().Kind() == reflect.Uint8 {
		return encodeValue(list.Bytes(), path, depth)
	}
	values := make([]*pb.Value, list.Len())
	for position := range values {
		value, err := encodeValue(list.Index(position).Interface(), fmt.Sprintf("%s[%d]", path, position), depth+1)
		if err != nil {
			return nil, err
		}
		values[position] = value
	}
	return &pb.Value{Kind: &pb.Value_ListValue{ListValue: &pb.ListValue{Values: values}}}, nil
}

func encodeMap(fields map[string]any, path string, depth int) (*pb.Value, error) {
	if depth >= maxDepth {
		return nil, tooDeep(path)
	}
	encoded, err := encodeFields(fields, path+".", depth+1)
	if err != nil {
		return nil, err
	}
	return &pb.Value{Kind: &pb.Value_MapValue{MapValue: &pb.MapValue{Fields: encoded}}}, nil
}

func decodeFields(fields map[string]*pb.Value, path string, depth int) (map[string]any, error) {
	decoded := make(map[string]any, len(fields))
	for name, message := range fields {
		value, err := decodeValue(message, path+name, depth)
		if err != nil {
			return nil, err
		}
		decoded[name] = value
	}
	return decoded, nil
}

func decodeValue(message *pb.Value, path string, depth int) (any, error) {
	switch kind := message.GetKind().(type) {
	case *pb.Value_StringValue:
		return kind.StringValue, nil
	case *pb.Value_IntValue:
		return kind.IntValue, nil
	case *pb.Value_DoubleValue:
		return kind.DoubleValue, nil
	case *pb.Value_BoolValue:
		return kind.BoolValue, nil
	case *pb.Value_BytesValue:
		return kind.BytesValue, nil
	case *pb.Value_ListValue:
		if depth >= maxDepth {
			return nil, tooDeep(path)
		}
		return decodeList(kind.ListValue.GetValues(), path, depth+1)
	case *pb.Value_MapValue:
		if depth >= maxDepth {
			return nil, tooDeep(path)
		}
		return decodeFields(kind.MapValue.GetFields(), path+".", depth+1)
	case *pb.Value_NullValue:
		if !kind.NullValue {
			return nil, &UnencodableError{path, "has null_value set to false, which means nothing."}
		}
		return nil, nil
	}
	return nil, &UnencodableError{path, "is a Value with no kind set."}
}

func decodeList(values []*pb.Value, path string, depth int) (any, error) {
	decoded := make([]any, len(values))
	for position, message := range values {
		value, err := decodeValue(message, fmt.Sprintf("%s[%d]", path, position), depth)
		if err != nil {
			return nil, err
		}
		decoded[position] = value
	}
	return decoded, nil
}

func notText(path string) error {
	return &UnencodableError{path, "holds text that is not UTF-8. Send it as []byte, or mend it with strings.ToValidUTF8."}
}

func tooDeep(path string) error {
	if len(path) > 80 {
		path = path[:80]
	}
	problem := fmt.Sprintf("nests more than %d levels deep, the most that can cross the wire. Flatten it, or send it as text.", maxDepth)
	return &UnencodableError{path, problem}
}
