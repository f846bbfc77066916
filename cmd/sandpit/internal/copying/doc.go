// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package copying has the command that copies files and trees into sandboxes and out of them.
package copying
