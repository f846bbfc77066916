// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"os"
	"path/filepath"

	"sandpit.dev/runtime"
)

var _ runtime.LogKeeper = (*instance)(nil)

// Logs opens the directory of the logs of its processes. See [runtime.LogKeeper].
func (i *instance) Logs() (*os.File, error) { return os.Open(filepath.Join(i.m.dir, logDir)) }
