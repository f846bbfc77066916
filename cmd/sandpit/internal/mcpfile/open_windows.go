// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcpfile

import (
	"io/fs"
	"os"
)

// openPlain opens a file to be read. A link is errLink.
func openPlain(path string) (*os.File, error) {
	st, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, err
	case st.Mode()&fs.ModeSymlink != 0:
		return nil, errLink
	case !st.Mode().IsRegular():
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrInvalid}
	}
	return os.Open(path)
}

// owned is true: whose a file is is in its access list, which says who may write it.
func owned(fs.FileInfo) bool { return true }
