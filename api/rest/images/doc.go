// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package images serves the operations on images: what there is of them, builds, pulls, archives, pushes and what
// is on disk.
package images
