package cbench

import (
	"maps"
	"slices"
)

// Example is one record of a dataset, or what a system made of it.
//
// It never changes: [Example.With] returns another one. The zero Example means
// that there is none; [NewExample] makes an empty one.
type Example struct {
	fields map[string]any
}

// NewExample returns an example with a copy of fields, among which "id" and
// "dataset" are special only on the wire.
//
// Values are nil, bool, integers, floats, string, []byte, and slices and
// string-keyed maps of these. One that cannot cross the wire without loss is
// refused by name when the example is sent.
func NewExample(fields map[string]any) Example {
	copied := make(map[string]any, len(fields))
	maps.Copy(copied, fields)
	return Example{copied}
}

// Get returns the value of a field, nil if it has none.
//
// What came over the wire is nil, bool, int64, float64, string, []byte, []any
// or map[string]any. Lists and maps must not be changed.
func (e Example) Get(name string) any { return e.fields[name] }

// Lookup returns the value of a field, and whether there is one.
func (e Example) Lookup(name string) (any, bool) {
	value, ok := e.fields[name]
	return value, ok
}

// Text returns a field that holds text, "" for any other.
func (e Example) Text(name string) string {
	text, _ := e.fields[name].(string)
	return text
}

// Context returns the text to work on, "" if there is none.
func (e Example) Context() string { return e.Text("context") }

// Question returns what is asked about the context, "" if nothing is.
func (e Example) Question() string { return e.Text("question") }

// Response returns the answer, "" if there is none.
func (e Example) Response() string { return e.Text("response") }

// ID returns the example's id, a string or an int64; nil if it has none.
func (e Example) ID() any { return e.fields["id"] }

// Dataset returns the name of the dataset the example came from, "" if it does not say.
func (e Example) Dataset() string { return e.Text("dataset") }

// With returns a copy of the example in which a field has another value.
func (e Example) With(name string, value any) Example {
	return e.WithAll(map[string]any{name: value})
}

// WithAll returns a copy of the example in which several fields have other values.
func (e Example) WithAll(fields map[string]any) Example {
	copied := make(map[string]any, len(e.fields)+len(fields))
	maps.Copy(copied, e.fields)
	maps.Copy(copied, fields)
	return Example{copied}
}

// WithUsage returns a copy of the example that reports what making it cost.
func (e Example) WithUsage(usage Usage) Example {
	return e.With("api_usage", usage.fields())
}

// Without returns a copy of the example that lacks some fields.
func (e Example) Without(names ...string) Example {
	copied := NewExample(e.fields)
	for _, name := range names {
		delete(copied.fields, name)
	}
	return copied
}

// Fields returns a copy of all fields, "id" and "dataset" included.
func (e Example) Fields() map[string]any { return maps.Clone(e.fields) }

// Names returns the names of all fields, sorted.
func (e Example) Names() []string { return slices.Sorted(maps.Keys(e.fields)) }

// IsZero reports whether this is the zero Example, which means none.
func (e Example) IsZero() bool { return e.fields == nil }
