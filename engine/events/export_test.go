// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package events

import "context"

// Load is the first part of a round of Run.
func (l *Log) Load(ctx context.Context) error {
	_, err := l.load(ctx)
	return err
}

// Prune is the second.
func (l *Log) Prune(ctx context.Context) { l.prune(ctx) }
