// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package archive reads the archives that commands import, and writes those that they export, whole or not at all.
// What is in them it does not know.
package archive
