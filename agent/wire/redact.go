// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire

import "sandpit.dev/fault"

// CheckRedact refuses values to keep out of output that are too many, too long or none.
// What it says has no value in it.
func CheckRedact(values [][]byte) error {
	if len(values) > MaxRedact {
		return fault.InvalidField("redact", "has %d values, over the bound of %d", len(values), MaxRedact)
	}
	total := 0
	for i, v := range values {
		if len(v) < MinRedactValue || len(v) > MaxRedactValue {
			return fault.InvalidField("redact", "value %d has %d bytes, outside %d to %d", i, len(v), MinRedactValue, MaxRedactValue)
		}
		total += len(v)
	}
	if total > MaxRedactBytes {
		return fault.InvalidField("redact", "has %d bytes, over the bound of %d", total, MaxRedactBytes)
	}
	return nil
}
