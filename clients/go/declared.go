package cbench

import (
	"context"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	pb "github.com/cbench/cbench-server/clients/go/cbenchpb"
)

// OptionsOf returns the options of the call that a context was made for: a copy
// of the struct that the component declares in its Options, with what the run
// sets in the place of its defaults. It panics if the component declares none
// of that type.
func OptionsOf[T any](ctx context.Context) T {
	options, ok := ctx.Value(optionsKey{}).(T)
	if !ok {
		panic(fmt.Sprintf("OptionsOf wants a %T, and the component declares a %T in its Options", options, ctx.Value(optionsKey{})))
	}
	return options
}

type optionsKey struct{}

// declared is what a component says of the options it takes, read from a struct
// whose values are the defaults and whose fields have these tags:
//
//	option:"name"         what callers write; without it the field's name, as in max_words
//	option:"-"            not an option
//	option:"*"            a map[string]any for options of any other name
//	help:"One sentence."  what it is for
//	min:"0" max:"1"       the range of a number, both ends included
//	enum:"low,high"       the only values allowed
//	required:"true"       it may not be left out, and has no default
//
// A field is a bool, an integer, a float, a string, a slice, a map with string
// keys, or any. A pointer to one of these takes null as well; nil is no default.
type declared struct {
	defaults reflect.Value
	options  []declaredOption
	// others is the position of the map for any other option, -1 if there is none.
	others  int
	message *pb.DeclaredOptions
}

type declaredOption struct {
	position int
	info     *pb.OptionInfo
	choices  []any
}

// declare reads the struct in which a component declares its options; nil gives nil.
func declare(owner string, options any) (*declared, error) {
	if options == nil {
		return nil, nil
	}
	defaults := reflect.ValueOf(options)
	if defaults.Kind() != reflect.Struct {
		return nil, notServable("%q has Options of type %T; they are declared by a struct", owner, options)
	}
	made := &declared{defaults: defaults, others: -1, message: &pb.DeclaredOptions{}}
	for position := range defaults.NumField() {
		field := defaults.Type().Field(position)
		name, hasName := field.Tag.Lookup("option")
		switch {
		case name == "-" || !field.IsExported():
			continue
		case name == "*":
			if field.Type != reflect.TypeFor[map[string]any]() {
				return nil, notServable("%q has Options whose field %s is no map[string]any", owner, field.Name)
			}
			made.others, made.message.AcceptsOthers = position, true
			continue
		case !hasName:
			name = snakeCase(field.Name)
		}
		option, err := declareOption(name, position, field, defaults.Field(position))
		if err != nil {
			return nil, notServable("%q has Options whose field %s %s", owner, field.Name, err)
		}
		made.options = append(made.options, option)
		made.message.Options = append(made.message.Options, option.info)
	}
	return made, nil
}

func declareOption(name string, position int, field reflect.StructField, byDefault reflect.Value) (declaredOption, error) {
	info := &pb.OptionInfo{
		Name: name, Description: field.Tag.Get("help"), Required: field.Tag.Get("required") == "true",
		Nullable: field.Type.Kind() == reflect.Pointer,
	}
	option := declaredOption{position: position, info: info}
	kind := field.Type
	if info.Nullable {
		kind = kind.Elem()
	}
	var known bool
	if info.Type, known = typeOf(kind); !known {
		return option, fmt.Errorf("is a %s, which no option can be", field.Type)
	}
	if name == "" || len(name) > 200 || strings.ContainsAny(name, "=. \t\n") {
		return option, fmt.Errorf("is called %q; an option's name has no \"=\", \".\" or white space", name)
	}
	for tag, bound := range map[string]**float64{"min": &info.Minimum, "max": &info.Maximum} {
		if text, isGiven := field.Tag.Lookup(tag); isGiven {
			number, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return option, fmt.Errorf("has the tag %s:%q, which is no number", tag, text)
			}
			*bound = &number
		}
	}
	if text, isGiven := field.Tag.Lookup("enum"); isGiven {
		for word := range strings.SplitSeq(text, ",") {
			choice, err := parsed(word, info.Type)
			if err != nil {
				return option, fmt.Errorf("has the tag enum:%q: %w", text, err)
			}
			option.choices = append(option.choices, choice)
		}
		choices, err := encodeFields(map[string]any{"enum": option.choices}, "", 0)
		if err != nil {
			return option, err
		}
		info.Choices = choices["enum"].GetListValue().GetValues()
	}
	isNil := (info.Nullable || kind.Kind() == reflect.Interface) && byDefault.IsNil()
	if info.Required || isNil {
		return option, nil
	}
	if info.Nullable {
		byDefault = byDefault.Elem()
	}
	encoded, err := encodeFields(map[string]any{name: byDefault.Interface()}, "", 0)
	if err != nil {
		return option, err
	}
	info.DefaultValue = encoded[name]
	return option, nil
}

func typeOf(kind reflect.Type) (pb.OptionType, bool) {
	switch kind.Kind() {
	case reflect.Bool:
		return pb.OptionType_OPTION_TYPE_BOOL, true
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return pb.OptionType_OPTION_TYPE_INTEGER, kind.PkgPath() != "time"
	case reflect.Float32, reflect.Float64:
		return pb.OptionType_OPTION_TYPE_NUMBER, true
	case reflect.String:
		return pb.OptionType_OPTION_TYPE_TEXT, true
	case reflect.Slice:
		_, known := typeOf(kind.Elem())
		return pb.OptionType_OPTION_TYPE_LIST, known
	case reflect.Map:
		_, known := typeOf(kind.Elem())
		return pb.OptionType_OPTION_TYPE_MAP, known && kind.Key().Kind() == reflect.String
	case reflect.Interface:
		return pb.OptionType_OPTION_TYPE_UNSPECIFIED, kind.NumMethod() == 0
	}
	return pb.OptionType_OPTION_TYPE_UNSPECIFIED, false
}

func parsed(word string, kind pb.OptionType) (any, error) {
	switch kind {
	case pb.OptionType_OPTION_TYPE_INTEGER:
		return strconv.ParseInt(word, 10, 64)
	case pb.OptionType_OPTION_TYPE_NUMBER:
		return strconv.ParseFloat(word, 64)
	case pb.OptionType_OPTION_TYPE_TEXT:
		return word, nil
	}
	return nil, fmt.Errorf("only numbers and text can be listed")
}

// into adds the options of a call to its context, or says why they do not suit.
func (d *declared) into(ctx context.Context, given map[string]any) (context.Context, error) {
	if d == nil {
		return ctx, nil
	}
	options := reflect.New(d.defaults.Type()).Elem()
	options.Set(d.defaults)
	rest := maps.Clone(given)
	for _, option := range d.options {
		name := option.info.GetName()
		value, isGiven := given[name]
		delete(rest, name)
		if !isGiven {
			if option.info.GetRequired() {
				return ctx, fmt.Errorf("option %q is missing, and has no default", name)
			}
			continue
		}
		if problem := option.set(options.Field(option.position), value); problem != "" {
			return ctx, fmt.Errorf("option %q is %#v; it must be %s", name, value, problem)
		}
	}
	if len(rest) > 0 && d.others < 0 {
		return ctx, fmt.Errorf("there is no option %q. There are: %s", slices.Min(slices.Collect(maps.Keys(rest))), d.names())
	}
	if len(rest) > 0 {
		options.Field(d.others).Set(reflect.ValueOf(rest))
	}
	return context.WithValue(ctx, optionsKey{}, options.Interface()), nil
}

// byDefault adds the defaults to the context of a call that brings no options.
func (d *declared) byDefault(ctx context.Context) context.Context {
	if d == nil {
		return ctx
	}
	return context.WithValue(ctx, optionsKey{}, d.defaults.Interface())
}

func (d *declared) names() string {
	names := make([]string, len(d.options))
	for position, option := range d.options {
		names[position] = option.info.GetName()
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// takesNone reports whether no option is taken.
func (d *declared) takesNone() bool { return d != nil && len(d.options) == 0 && d.others < 0 }

// announced is the message for Describe, nil if nothing is declared.
func (d *declared) announced() *pb.DeclaredOptions {
	if d == nil {
		return nil
	}
	return d.message
}

// set puts a value into a field, or says in words what it should have been.
func (o declaredOption) set(field reflect.Value, value any) string {
	if !assign(field, value) {
		return kindNames[o.info.GetType()]
	}
	if value == nil {
		return ""
	}
	if number, isNumber := asFloat(value); isNumber {
		if o.info.Minimum != nil && !(number >= o.info.GetMinimum()) {
			return fmt.Sprintf("at least %v", o.info.GetMinimum())
		}
		if o.info.Maximum != nil && !(number <= o.info.GetMaximum()) {
			return fmt.Sprintf("at most %v", o.info.GetMaximum())
		}
	}
	isChoice := func(choice any) bool {
		one, isOne := asFloat(choice)
		other, isOther := asFloat(value)
		return choice == value || (isOne && isOther && one == other)
	}
	if len(o.choices) > 0 && !slices.ContainsFunc(o.choices, isChoice) {
		return fmt.Sprintf("one of %v", o.choices)
	}
	return ""
}

var kindNames = map[pb.OptionType]string{
	pb.OptionType_OPTION_TYPE_BOOL: "true or false", pb.OptionType_OPTION_TYPE_INTEGER: "an integer that fits",
	pb.OptionType_OPTION_TYPE_NUMBER: "a number", pb.OptionType_OPTION_TYPE_TEXT: "text",
	pb.OptionType_OPTION_TYPE_LIST: "a list of such values", pb.OptionType_OPTION_TYPE_MAP: "a map of such values",
}

// assign puts a decoded value into a variable, and reports whether it suits.
func assign(to reflect.Value, value any) bool {
	if to.Kind() == reflect.Pointer {
		if value == nil {
			to.SetZero()
			return true
		}
		made := reflect.New(to.Type().Elem())
		to.Set(made)
		return assign(made.Elem(), value)
	}
	switch to.Kind() {
	case reflect.Interface:
		if value == nil {
			to.SetZero()
		} else {
			to.Set(reflect.ValueOf(value))
		}
		return true
	case reflect.Slice:
		items, ok := value.([]any)
		made := reflect.MakeSlice(to.Type(), len(items), len(items))
		for position, item := range items {
			ok = ok && assign(made.Index(position), item)
		}
		to.Set(made)
		return ok
	case reflect.Map:
		entries, ok := value.(map[string]any)
		made := reflect.MakeMap(to.Type())
		for key, item := range entries {
			element := reflect.New(to.Type().Elem()).Elem()
			ok = ok && assign(element, item)
			made.SetMapIndex(reflect.ValueOf(key).Convert(to.Type().Key()), element)
		}
		to.Set(made)
		return ok
	}
	return assignPlain(to, value)
}

func assignPlain(to reflect.Value, value any) bool {
	switch value := value.(type) {
	case bool:
		if to.Kind() == reflect.Bool {
			to.SetBool(value)
			return true
		}
	case string:
		if to.Kind() == reflect.String {
			to.SetString(value)
			return true
		}
	case float64:
		if to.CanFloat() {
			to.SetFloat(value)
			return true
		}
		// A whole number may be written as 3.0.
		return value == math.Trunc(value) && math.Abs(value) < 1<<53 && assignPlain(to, int64(value))
	case int64:
		switch {
		case to.CanFloat():
			to.SetFloat(float64(value))
			return true
		case to.CanInt() && !to.OverflowInt(value):
			to.SetInt(value)
			return true
		case to.CanUint() && value >= 0 && !to.OverflowUint(uint64(value)):
			to.SetUint(uint64(value))
			return true
		}
	}
	return false
}

func asFloat(value any) (float64, bool) {
	switch value := value.(type) {
	case int64:
		return float64(value), true
	case float64:
		return value, true
	}
	return 0, false
}

// snakeCase spells a field's name as options are: MaxWords is max_words.
func snakeCase(name string) string {
	var text strings.Builder
	for position, letter := range name {
		isUpper := letter >= 'A' && letter <= 'Z'
		if isUpper && position > 0 {
			before := name[position-1]
			startsWord := position+1 < len(name) && name[position+1] >= 'a' && name[position+1] <= 'z'
			if before < 'A' || before > 'Z' || startsWord {
				text.WriteByte('_')
			}
		}
		text.WriteRune(letter)
	}
	return strings.ToLower(text.String())
}
