// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"path/filepath"

	"sandpit.dev/blob"
	"sandpit.dev/blob/dir"
)

// archivesDir is the directory in the data directory that holds archives if no place is configured.
const archivesDir = "archive"

// archives returns the store of archives.
func (c Config) archives() (blob.Store, error) {
	s, err := c.Archive.Open(blob.Archives(), "")
	if s == nil && err == nil {
		return dir.Named(filepath.Join(c.Data, archivesDir), "directory "+archivesDir+" of the data directory"), nil
	}
	return s, err
}
