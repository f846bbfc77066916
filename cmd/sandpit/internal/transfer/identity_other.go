// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package transfer

import "io/fs"

// nonblocking keeps an open from waiting for the other end of a pipe.
const nonblocking = 0

type fileID struct{}

func identity(fs.FileInfo) (id fileID, many bool) { return id, false }
