// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package view says what a way of seeing the sandbox is: whose rights commands and file operations
// have, and on which thread they are done. It has the plain one; those of a runtime that isolates are
// the runtime's. It must not know what is done in a view.
package view
