// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package aptsource reads the files in which apt keeps where packages come from: deb822, and the
// older format with a source on each line. It looks at no disk.
package aptsource
