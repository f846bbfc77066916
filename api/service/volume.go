// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/engine/volume"
)

// Volumes keeps disks that sandboxes share. A volume is named by its name or its id.
type Volumes interface {
	CreateVolume(ctx context.Context, c access.Caller, r volume.Request) (volume.Info, error)
	Volumes(ctx context.Context, c access.Caller) ([]volume.Info, error)
	Volume(ctx context.Context, c access.Caller, volume string) (volume.Info, error)
	UpdateVolume(ctx context.Context, c access.Caller, volume string, p volume.Patch) (volume.Info, error)
	DeleteVolume(ctx context.Context, c access.Caller, volume string) error
}
