// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"encoding/json"
)

// message is what a kernel says; the package doc lists what has which fields.
type message struct {
	T       string `json:"t"`
	ID      int64  `json:"id"`
	Version string `json:"version"`
	Count   int64  `json:"count"`

	Main    bool  `json:"main"`
	Data    forms `json:"data"`
	Cut     bool  `json:"cut"`
	Omitted lines `json:"omitted"`

	Name      string `json:"name"`
	Value     string `json:"value"`
	Traceback lines  `json:"traceback"`

	Status  string `json:"status"`
	Exit    int    `json:"exit"`
	Dropped int    `json:"dropped"`
}

// parseMessage reads one. Strings that it returns are valid UTF-8. What it needs of memory
// is of the size of b: short items are cheap to write and dear to keep, so it keeps few.
func parseMessage(b []byte) (*message, error) {
	var m message
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, formatError("a message is not JSON, or not of its form")
	}
	return &m, nil
}

// lines are strings, of which the first are kept.
type lines []string

func (l *lines) UnmarshalJSON(b []byte) error {
	*l = nil
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return err // null, for example, is not a message
	}
	for d.More() && len(*l) < maxLines {
		t, err := d.Token()
		s, ok := t.(string)
		if err != nil || !ok {
			return formatError("a list holds what is no string")
		}
		*l = append(*l, s)
	}
	return nil
}

// maxFormsRead is how many forms of a result are looked at.
const maxFormsRead = 4 * MaxForms

// forms are a result's, by mime type.
type forms map[string]json.RawMessage

func (f *forms) UnmarshalJSON(b []byte) error {
	*f = nil
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return err
	}
	*f = forms{}
	for n := 0; d.More() && n < maxFormsRead; n++ { // one name may come often
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return formatError("a form has no name")
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		(*f)[name] = value
	}
	return nil
}
