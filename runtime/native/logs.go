// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"os"

	"sandpit.dev/runtime"
)

var _ runtime.LogKeeper = (*Instance)(nil)

// Logs opens the directory of the logs of its processes. See [runtime.LogKeeper].
func (i *Instance) Logs() (*os.File, error) { return i.d.layers.Logs(string(i.id)) }
