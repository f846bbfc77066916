// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package terminal

import "os"

// Resizes returns a channel that never receives: Windows has no signal for it.
func Resizes() (_ <-chan os.Signal, stop func()) { return nil, func() {} }
