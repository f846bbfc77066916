// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

// BackupType is the media type of a backup.
const BackupType = "application/x-tar"
