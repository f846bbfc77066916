// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package app has what commands get of the process that they run in: its streams, a client of the server, words
// for errors, and what completes names. It knows no command.
package app
