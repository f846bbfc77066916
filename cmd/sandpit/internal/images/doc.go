// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package images has the commands about images, and shows how far builds are.
package images
