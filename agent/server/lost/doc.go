// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package lost finds files of a container's root that were changed since the container started, and that are lost when it is removed. It follows no link,
// leaves out what is mounted and what is temporary by its name, and knows neither who asks nor why.
package lost
