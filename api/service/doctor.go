// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/doctor"
)

// Doctor says what a running server finds of itself and of its host.
type Doctor interface {
	Report(ctx context.Context, c access.Caller) (doctor.Report, error)
}
