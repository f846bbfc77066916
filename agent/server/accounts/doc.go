// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package accounts reads and changes the files inside that tell of accounts, and makes the directories of
// one. All of it is the sandbox's own to write: each file is opened beneath the root without following a
// link, read up to a bound, and believed no further than the numbers that the kernel checks. It must not
// know views or commands.
package accounts
