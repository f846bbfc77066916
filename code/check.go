// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package code

import "sandpit.dev/fault"

// check collects every wrong field of a request, so that one answer names them all.
type check struct{ fields []fault.Field }

func (k *check) bad(field, format string, args ...any) {
	k.add(fault.InvalidField(field, format, args...))
}

// add takes the fields of an Invalid error, and returns any other.
func (k *check) add(err error) error {
	if err != nil && !fault.Is(err, fault.Invalid) {
		return err
	}
	if err != nil {
		k.fields = append(k.fields, fault.As(err).Fields...)
	}
	return nil
}

// bytes checks a bound of bytes to collect.
func (k *check) bytes(field string, n, most int64) {
	if n < 0 || n > most {
		k.bad(field, "%d is outside 0 to %d bytes", n, most)
	}
}

func (k *check) err() error {
	if len(k.fields) == 0 {
		return nil
	}
	return fault.InvalidFields(k.fields...)
}
