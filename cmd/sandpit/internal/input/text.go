// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"fmt"
	"io"
)

// MaxText is more than any secret has, so that what is too long is told and not cut.
const MaxText = 64 << 10

// ReadUpTo reads what open opens, and refuses what has more than MaxText bytes.
func ReadUpTo(open func() (io.ReadCloser, error)) ([]byte, error) {
	f, err := open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, MaxText+1))
	if err == nil && len(b) > MaxText {
		err = fmt.Errorf("it has more than %d bytes", MaxText)
	}
	return b, err
}
