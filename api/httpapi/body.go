// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"sandpit.dev/api/guard"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// object reads JSON objects into one struct type, strictly: a field that the
// type does not have, one that is given twice, and one that differs from its
// name in letter case are errors, and so is a null among the values of a map.
type object struct {
	typ    reflect.Type
	fields map[string]reflect.Type // by JSON name
	lists  map[string]*object      // those that are lists of objects
	parts  map[string]*object      // those that are objects
	names  []string
}

func newObject(t reflect.Type) *object {
	o := &object{typ: t, fields: make(map[string]reflect.Type), lists: make(map[string]*object), parts: make(map[string]*object)}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || f.Anonymous {
			continue
		}
		typ := f.Type
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		if typ.Kind() == reflect.Slice && typ.Elem().Kind() == reflect.Struct {
			o.lists[name] = newObject(typ.Elem())
		}
		if typ.Kind() == reflect.Struct && typ != reflect.TypeFor[time.Time]() {
			o.parts[name] = newObject(typ)
		}
		o.fields[name] = typ
		o.names = append(o.names, name)
	}
	return o
}

// read reads the request's body into v, at most limit bytes. No body at all is
// an object without fields.
func (o *object) read(c *Call, v reflect.Value, limit int64) error {
	if c.R.ContentLength == 0 {
		return nil
	}
	if err := checkType(c.R); err != nil {
		return err
	}
	if c.R.ContentLength > limit {
		return guard.TooLarge(limit)
	}
	if err := c.reserveBody(limit); err != nil {
		return err
	}
	buf := getBuffer()
	defer putBuffer(buf)
	if err := readBody(c.R, buf, limit); err != nil {
		return err
	}
	return o.decode(buf.Bytes(), v, c.lenient())
}

// buffers are reused between requests; large ones are left to the collector.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const keepBuffer = 1 << 18

func getBuffer() *bytes.Buffer { return buffers.Get().(*bytes.Buffer) }

func putBuffer(b *bytes.Buffer) {
	if b.Cap() <= keepBuffer {
		b.Reset()
		buffers.Put(b)
	}
}

// Decode reads an object of JSON into a struct, as the bodies of requests are read.
func Decode[T any](data []byte) (out T, err error) {
	err = newObject(reflect.TypeFor[T]()).decode(data, reflect.ValueOf(&out).Elem(), false)
	return out, err
}

func checkType(r *http.Request) error {
	refuse := func(format string, args ...any) error {
		return guard.WithStatus(http.StatusUnsupportedMediaType,
			fault.New(fault.Malformed, format, args...).WithRemedy("send JSON in UTF-8 with the header Content-Type: application/json"))
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return refuse("the body is encoded as %q, which is not read here", sandbox.Clip(enc, 40))
	}
	ct := r.Header.Get("Content-Type")
	if ct == "" {
		return nil
	}
	media, params, err := mime.ParseMediaType(ct)
	if err != nil || (media != "application/json" && !strings.HasSuffix(media, "+json")) {
		return refuse("the body's type %q is not JSON", sandbox.Clip(ct, 80))
	}
	if cs := params["charset"]; cs != "" && !strings.EqualFold(cs, "utf-8") {
		return refuse("the body's character set is %q, not UTF-8", sandbox.Clip(cs, 40))
	}
	return nil
}

// decode reads data into v, which is settable. It keeps nothing of data. lenient ignores fields that the type does not have.
func (o *object) decode(data []byte, v reflect.Value, lenient bool) error {
	if len(bytes.TrimLeft(data, " \t\r\n")) == 0 {
		return nil
	}
	if !utf8.Valid(data) {
		at := 0
		for at < len(data) {
			r, size := utf8.DecodeRune(data[at:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			at += size
		}
		return fault.New(fault.Malformed, "the body is not UTF-8: byte %d is 0x%02x", at+1, data[at]).
			WithRemedy("send bytes that are no text in base64")
	}
	err := json.Unmarshal(data, v.Addr().Interface())
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		line, column := position(data, syntax.Offset)
		return fault.New(fault.Malformed, "the body is not JSON: %v (line %d, column %d)", syntax, line, column).
			WithRemedy("send one JSON object")
	}
	if first := bytes.TrimLeft(data, " \t\r\n")[0]; first != '{' {
		return fault.New(fault.Malformed, "the body is JSON but no object: it starts with %q", first).WithRemedy("send one JSON object")
	}
	bad := o.check(data, lenient)
	if err != nil {
		bad = append(bad, o.mistyped(data, err)...)
	}
	if len(bad) > 0 {
		return invalid(bad)
	}
	return nil
}

// position turns a syntax error's offset into a place that a person finds.
func position(data []byte, offset int64) (line, column int) {
	before := data[:min(max(offset-1, 0), int64(len(data)))]
	line = bytes.Count(before, []byte("\n")) + 1
	return line, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
}

// check looks at the names of an object that is known to be valid JSON.
func (o *object) check(data []byte, lenient bool) (bad []fault.Field) {
	seen := make([]string, 0, 8)
	for name, value := range members(data) {
		typ, ok := o.fields[name]
		if !ok && lenient {
			continue
		}
		if slices.Contains(seen, name) {
			bad = append(bad, fault.Field{Name: sandbox.Clip(name, 80), Message: "is given twice"})
			continue
		}
		if len(seen) > len(o.names)+20 {
			return append(bad, fault.Field{Name: "body", Message: "has many more fields than there are"})
		}
		seen = append(seen, name)
		if !ok {
			bad = append(bad, fault.Field{Name: sandbox.Clip(name, 80), Message: "is not a field of this request" + Suggest(name, o.names)})
			continue
		}
		switch {
		case typ.Kind() == reflect.Map && value[0] == '{':
			bad = append(bad, checkMap(name, value)...)
		case typ.Kind() == reflect.Interface && value[0] == '{':
			bad = append(bad, checkOnce(name, value)...)
		case o.lists[name] != nil && value[0] == '[':
			bad = append(bad, o.lists[name].checkList(name, value, lenient)...)
		case o.parts[name] != nil && value[0] == '{':
			bad = append(bad, inside(name, o.parts[name].check(value, lenient))...)
		}
	}
	return bad
}

// inside names the fields of an object that is itself a field.
func inside(field string, bad []fault.Field) []fault.Field {
	for i := range bad {
		bad[i].Name = field + "." + bad[i].Name
	}
	return bad
}

// maxList is how many objects of a list are looked at for what is wrong with them.
const maxList = 100

// checkList looks at the names of the objects of a list.
func (o *object) checkList(field string, data []byte, lenient bool) (bad []fault.Field) {
	i := 0
	for value := range elements(data) {
		if i == maxList {
			return []fault.Field{{Name: field, Message: fmt.Sprintf("has more than %d objects", maxList)}}
		}
		at := fmt.Sprintf("%s[%d]", field, i)
		switch value[0] {
		case '{':
			bad = append(bad, inside(at, o.check(value, lenient))...)
		case 'n':
			bad = append(bad, fault.Field{Name: at, Message: "is null; it must be an object"})
		}
		i++
	}
	return bad
}

// maxMembers is how many members an object may have whose type nothing here knows.
const maxMembers = 40

// checkOnce looks for members that are given twice, of which the decoder would keep
// the last.
func checkOnce(field string, value []byte) (bad []fault.Field) {
	seen := make([]string, 0, maxMembers)
	for name := range members(value) {
		switch {
		case len(seen) == maxMembers:
			return []fault.Field{{Name: field, Message: "has many more members than there are"}}
		case slices.Contains(seen, name):
			bad = append(bad, fault.Field{Name: field + "." + sandbox.Clip(name, 80), Message: "is given twice"})
		}
		seen = append(seen, name)
	}
	return bad
}

func checkMap(field string, value []byte) (bad []fault.Field) {
	seen := make(map[string]bool)
	for name, v := range members(value) {
		switch {
		case seen[name]:
			bad = append(bad, fault.Field{Name: field + "." + sandbox.Clip(name, 80), Message: "is given twice"})
		case v[0] == 'n':
			bad = append(bad, fault.Field{Name: field + "." + sandbox.Clip(name, 80), Message: "is null; its values are texts"})
		case v[0] == '{':
			bad = append(bad, checkOnce(field+"."+sandbox.Clip(name, 80), v)...)
		}
		seen[name] = true
	}
	return bad
}

// mistyped returns the fields that have a value of a wrong type, at least one.
func (o *object) mistyped(data []byte, err error) []fault.Field {
	if bad := o.misfits(data); bad != nil {
		return bad
	}
	return []fault.Field{{Name: "body", Message: err.Error()}}
}

func (o *object) misfits(data []byte) (bad []fault.Field) {
	for name, value := range members(data) {
		typ, ok := o.fields[name]
		if !ok || value[0] == 'n' {
			continue
		}
		if typ.Kind() == reflect.Map && value[0] == '{' {
			for label, v := range members(value) {
				if !fits(v, typ.Elem()) {
					bad = append(bad, wrongType(name+"."+sandbox.Clip(label, 80), v, typ.Elem()))
				}
			}
			continue
		}
		if list := o.lists[name]; list != nil && value[0] == '[' {
			bad = append(bad, list.mistypedList(name, value)...)
			continue
		}
		if part := o.parts[name]; part != nil && value[0] == '{' {
			bad = append(bad, inside(name, part.misfits(value))...)
			continue
		}
		if !fits(value, typ) {
			bad = append(bad, wrongType(name, value, typ))
		}
	}
	return bad
}

// mistypedList is mistyped for each object of a list.
func (o *object) mistypedList(field string, data []byte) (bad []fault.Field) {
	i := 0
	for value := range elements(data) {
		if i == maxList {
			return bad
		}
		at := fmt.Sprintf("%s[%d]", field, i)
		if i++; fits(value, o.typ) {
			continue
		}
		if value[0] != '{' {
			bad = append(bad, wrongType(at, value, o.typ))
			continue
		}
		for name, value := range members(value) {
			if typ, ok := o.fields[name]; ok && value[0] != 'n' && !fits(value, typ) {
				bad = append(bad, wrongType(at+"."+name, value, typ))
			}
		}
	}
	return bad
}

func fits(value []byte, t reflect.Type) bool {
	return json.Unmarshal(value, reflect.New(t).Interface()) == nil
}

func wrongType(name string, value []byte, t reflect.Type) fault.Field {
	if kind := t.Kind(); len(value) > 2 && value[0] == '"' && kind != reflect.String && fits(value[1:len(value)-1], t) {
		return fault.Field{Name: name, Message: fmt.Sprintf("is the text %s; write it without the quotes", sandbox.Clip(string(value), 80))}
	}
	return fault.Field{Name: name, Message: fmt.Sprintf("is %s; it must be %s", sandbox.Clip(string(value), 80), kindName(t))}
}

func kindName(t reflect.Type) string {
	if t == reflect.TypeFor[time.Time]() {
		return "a time such as 2026-01-31T12:00:00Z"
	}
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Uint16:
		return "a whole number within 64 bits"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Struct {
			return "a list of objects"
		}
		return "a list of texts"
	case reflect.Map:
		return "an object whose values are texts"
	}
	return "an object"
}
