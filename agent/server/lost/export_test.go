// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package lost

// FindBelow looks through another directory in the place of the root.
var FindBelow = find
