// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"sandpit.dev/audit"
	"sandpit.dev/audit/recorder"
	"sandpit.dev/fault"
	"sandpit.dev/internal/excerpt"
	"sandpit.dev/redact/redactlog"
	"sandpit.dev/store"
)

// AuditKeyFile is the file in the data directory that holds the key by which the audit log is signed.
const AuditKeyFile = "audit.key"

// auditCloses bounds the last write of the audit log.
const auditCloses = 10 * time.Second

// AuditConfig is what the audit log has; zero fields take the value named behind them. Rows are kept as long as events.
type AuditConfig struct {
	// OutputBytes is how much of the beginning of what a command writes is in its row, and of the end: 2048, which is the
	// most. Less than zero: nothing but the counts and the hash.
	OutputBytes int `yaml:"output_bytes"`
	Count       int `yaml:"keep_count"` // of all projects, the oldest go first: 5000000
}

func (c AuditConfig) check() error {
	if c.OutputBytes < -1 || c.OutputBytes > excerpt.Most {
		return fault.InvalidField("audit.output_bytes", "%d is outside -1 to %d", c.OutputBytes, excerpt.Most)
	}
	if c.Count < 0 || c.Count > 0 && c.Count < 1000 {
		return fault.InvalidField("audit.keep_count", "%d is less than 1000", c.Count)
	}
	return nil
}

// openAudit opens the audit log of the installation with an id.
func (c Config) openAudit(ctx context.Context, db store.Store, id string, secrets *redactlog.Log, version string, log *slog.Logger) (*recorder.Recorder, error) {
	key, err := audit.ReadOrMakeKey(filepath.Join(c.Data, AuditKeyFile))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the key of the audit log cannot be read: %v", err).
			WithRemedy("put a copy of the file in its place; a new key is made where there is none, and what the old one signed is then not verified")
	}
	return recorder.Open(ctx, db, recorder.Options{
		Writer: id, Key: key, Output: c.Audit.OutputBytes, Keep: c.Events.Keep, Count: c.Audit.Count, Redact: secrets.Redact, Version: version, Logger: log,
	})
}
