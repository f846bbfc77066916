// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package seal

import "errors"

// ErrNotSealed says that bytes were not sealed for what they are opened for: they were
// changed, cut short, put in the place of others, or never sealed.
var ErrNotSealed = errors.New("these bytes were not sealed for this place, or were changed")

// KeyGoneError says that a value was sealed by a key that the ring does not have.
type KeyGoneError struct {
	ID string // see Ring.KeyID
}

func (e *KeyGoneError) Error() string { return "the key " + e.ID + " is not there" }
