// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"math"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// usage is store.Usage within one transaction.
type usage struct{ tx *tx }

var _ store.Usage = usage{}

const (
	addUsage = "INSERT INTO usage (project, token, hour, commands, exec_time, run_time, cpu, memory, disk, uploaded, downloaded)" +
		" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (project, hour, token) DO UPDATE SET" +
		" commands = usage.commands + excluded.commands, exec_time = usage.exec_time + excluded.exec_time," +
		" run_time = usage.run_time + excluded.run_time, cpu = usage.cpu + excluded.cpu, memory = usage.memory + excluded.memory," +
		" disk = usage.disk + excluded.disk, uploaded = usage.uploaded + excluded.uploaded, downloaded = usage.downloaded + excluded.downloaded"
	talliedSandbox = "SELECT exec_count, exec_time, bytes_uploaded, bytes_downloaded FROM sandboxes WHERE id = $1 AND revision = $2"

	meterColumns = "sandbox, project, token, cpu, memory_mb, disk_mb, running, kept, run, run_until, disk_until"
	getMeter     = "SELECT " + meterColumns + " FROM usage_meters WHERE sandbox = $1"
	putMeter     = "INSERT INTO usage_meters (" + meterColumns + ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)" +
		" ON CONFLICT (sandbox) DO UPDATE SET project = excluded.project, token = excluded.token, cpu = excluded.cpu, memory_mb = excluded.memory_mb," +
		" disk_mb = excluded.disk_mb, running = excluded.running, kept = excluded.kept, run = excluded.run, run_until = excluded.run_until, disk_until = excluded.disk_until"
	usageFrom  = "SELECT project FROM usage WHERE project >= $1 ORDER BY project LIMIT 1"
	pruneUsage = "DELETE FROM usage WHERE project = $1 AND hour <= (SELECT MAX(hour) FROM (SELECT hour FROM usage WHERE project = $2 AND hour < $3 ORDER BY hour LIMIT $4) AS oldest)"
	allMeters  = "SELECT " + meterColumns + " FROM usage_meters WHERE sandbox > $1 ORDER BY sandbox LIMIT $2"
	// By the records' index: one of its own would be one more page of each create and delete.
	metersOf    = "SELECT " + meterColumns + " FROM usage_meters WHERE sandbox IN (SELECT id FROM sandboxes WHERE project = $1 AND id > $2) ORDER BY sandbox LIMIT $3"
	deleteMeter = "DELETE FROM usage_meters WHERE sandbox = $1"
)

// Amounts are whole numbers, so that sums are exact: of microseconds times thousandths of a processor, or MiB.
const (
	perCPUSecond = 1000 * 1e6
	perGiBSecond = 1024 * 1e6
)

func whole(seconds, per float64) int64 { return int64(math.Round(seconds * per)) }

func (q usage) Add(u store.Used) error {
	_, err := q.tx.exec(addUsage, u.Project, u.Token, micros(u.Time.UTC().Truncate(time.Hour)), u.Commands, int64(u.ExecTime), int64(u.RunTime),
		whole(u.CPUSeconds, perCPUSecond), whole(u.MemorySeconds, perGiBSecond), whole(u.DiskSeconds, perGiBSecond), u.Uploaded, u.Downloaded)
	return err
}

// sums are the columns that are added up, as numbers that do not overflow.
var sums = []string{"commands", "exec_time", "run_time", "cpu", "memory", "disk", "uploaded", "downloaded"}

func (q usage) Sum(query store.UsageQuery) (all []store.Used, err error) {
	var w where
	if query.Project != "" {
		w.and("project = " + w.arg(query.Project))
	}
	if query.Token != "" {
		w.and("token = " + w.arg(query.Token))
	}
	if !query.Since.IsZero() {
		w.and("hour >= " + w.arg(micros(query.Since)))
	}
	if !query.Until.IsZero() {
		w.and("hour < " + w.arg(micros(query.Until)))
	}
	project, token, at := "''", "''", "0"
	var by []string
	if query.ByProject {
		project, by = "project", append(by, "project")
	}
	if query.ByToken {
		token, by = "token", append(by, "token")
	}
	switch {
	case query.ByHour:
		at, by = "hour", append(by, "hour")
	case query.ByDay:
		day := strconv.FormatInt((24 * time.Hour).Microseconds(), 10)
		at = "hour - hour % " + day
		by = append(by, at)
	}
	var text strings.Builder
	text.WriteString("SELECT " + project + ", " + token + ", " + at)
	for _, c := range sums {
		text.WriteString(", COALESCE(SUM(CAST(" + c + " AS DOUBLE PRECISION)), 0.0)")
	}
	text.WriteString(" FROM usage" + w.String())
	if len(by) > 0 {
		text.WriteString(" GROUP BY " + strings.Join(by, ", ") + " ORDER BY " + strings.Join(by, ", "))
	}
	err = q.tx.each(text.String(), w.args, func(scan func(...any) error) error {
		var u store.Used
		var at int64
		var n [8]float64
		if err := scan(&u.Project, &u.Token, &at, &n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &n[6], &n[7]); err != nil {
			return err
		}
		u.Time = fromMicros(at)
		u.Commands, u.ExecTime, u.RunTime = int64(n[0]), time.Duration(n[1]), time.Duration(n[2])
		u.CPUSeconds, u.MemorySeconds, u.DiskSeconds = n[3]/perCPUSecond, n[4]/perGiBSecond, n[5]/perGiBSecond
		u.Uploaded, u.Downloaded = int64(n[6]), int64(n[7])
		all = append(all, u)
		return nil
	})
	return all, err
}

// Prune reads as much of the index as it deletes, so that others do not wait for it.
func (q usage) Prune(from string, before time.Time, limit int) (of string, deleted int, err error) {
	if err := q.tx.ready(true); err != nil {
		return "", 0, err
	}
	found, err := q.tx.row(usageFrom, []any{from}, &of)
	if err != nil || !found {
		return "", 0, err
	}
	n, err := q.tx.exec(pruneUsage, of, of, micros(before), int64(limit))
	return of, int(n), err
}

func (q usage) Tallied(id sandbox.ID, revision int64) (t store.Tallied, err error) {
	_, err = q.tx.row(talliedSandbox, []any{string(id), revision}, &t.Commands, (*int64)(&t.ExecTime), &t.Uploaded, &t.Downloaded)
	return t, err
}

// meterRow is one row as the data base returns it.
type meterRow struct {
	m                                         store.UsageMeter
	memory, disk, running, kept, until, diskU int64
}

func (r *meterRow) dest() []any {
	m := &r.m
	return []any{(*string)(&m.Sandbox), &m.Project, &m.Token, &m.CPU, &r.memory, &r.disk, &r.running, &r.kept, (*int64)(&m.Run), &r.until, &r.diskU}
}

func (r *meterRow) meter() *store.UsageMeter {
	m := r.m
	m.MemoryMB, m.DiskMB, m.Running, m.Kept = int(r.memory), int(r.disk), r.running != 0, r.kept != 0
	m.RunUntil, m.DiskUntil = fromMicros(r.until), fromMicros(r.diskU)
	return &m
}

func (q usage) Meter(id sandbox.ID) (*store.UsageMeter, error) {
	var r meterRow
	found, err := q.tx.row(getMeter, []any{string(id)}, r.dest()...)
	if err != nil || !found {
		return nil, err
	}
	return r.meter(), nil
}

func (q usage) PutMeter(m *store.UsageMeter) error {
	_, err := q.tx.exec(putMeter, string(m.Sandbox), m.Project, m.Token, m.CPU, int64(m.MemoryMB), int64(m.DiskMB), truth(m.Running), truth(m.Kept),
		int64(m.Run), micros(m.RunUntil), micros(m.DiskUntil))
	return err
}

func (q usage) DeleteMeter(id sandbox.ID) error {
	_, err := q.tx.exec(deleteMeter, string(id))
	return err
}

func (q usage) Meters(project string, after sandbox.ID, limit int) (all []*store.UsageMeter, err error) {
	text, args := allMeters, []any{string(after), int64(limit)}
	if project != "" {
		text, args = metersOf, []any{project, string(after), int64(limit)}
	}
	err = q.tx.each(text, args, func(scan func(...any) error) error {
		var r meterRow
		if err := scan(r.dest()...); err != nil {
			return err
		}
		all = append(all, r.meter())
		return nil
	})
	return all, err
}
