// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"

	"sandpit.dev/fault"
)

// Below returns an error about fields of a part of a request under their names in
// the whole.
func Below(prefix string, err error) error {
	e, ok := errors.AsType[*fault.Error](err)
	if !ok || len(e.Fields) == 0 {
		return err
	}
	whole := *e
	whole.Fields = make([]fault.Field, len(e.Fields))
	for i, f := range e.Fields {
		whole.Fields[i] = fault.Field{Name: prefix + f.Name, Message: f.Message}
	}
	if e.Message == fault.InvalidFields(e.Fields...).Message {
		whole.Message = fault.InvalidFields(whole.Fields...).Message
	}
	return &whole
}
