// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package backup is the form of a backup's file: a tar archive of a head, of parts, and of a
// manifest that has the size and the SHA-256 of each part. A part's length need not be known
// before it ends: it is cut into entries of at most a MiB, NAME.00000000 and on.
//
// It knows neither what is in a part nor who restores it, and trusts nothing that it reads.
package backup
