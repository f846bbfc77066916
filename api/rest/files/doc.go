// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package files serves the operations on the files of sandboxes: reading, writing, listing, watching, and trees as
// archives. It also serves single files to who has a signed link to one.
package files
