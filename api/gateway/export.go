// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Formats of an export.
const (
	formatJSON = "json"
	formatCSV  = "csv"
)

type exportLogs struct {
	ID string `path:"id"`
	logFilter
	Format *string `query:"format"`
}

// exportLogs sends all rows that match as they are read. An export that breaks off ends without its last chunk.
func (a *API) exportLogs(ctx context.Context, c *httpapi.Call, in *exportLogs) error {
	format := httpapi.Given(in.Format)
	if format == "" {
		format = formatJSON
	}
	if format != formatJSON && format != formatCSV {
		return fault.InvalidField("format", "%q is neither json nor csv", sandbox.Clip(format, 40))
	}
	q, err := a.logged(ctx, c, in.ID, &in.logFilter)
	if err != nil {
		return err
	}
	ctx, done := c.Bound(ctx)
	defer done()
	q.Limit = pageOfLogs
	page, next, err := a.Audit.List(ctx, c.Caller, q) // what is wrong with the query, or the caller, is an answer
	if err != nil {
		return httpapi.Cause(ctx, err)
	}
	h := c.W.Header()
	h.Set("Content-Type", map[string]string{formatJSON: "application/json", formatCSV: "text/csv; charset=utf-8"}[format])
	h.Set("Content-Disposition", `attachment; filename="logs.`+format+`"`)
	c.W.WriteHeader(http.StatusOK)
	out := c.StallWriter()
	defer out.Close()
	buffered := bufio.NewWriter(out)
	w := rowsAs(format, buffered)
	for {
		for _, r := range page {
			if err := w.row(logOf(r)); err != nil {
				return err
			}
		}
		if next == "" {
			break
		}
		q.Cursor = next
		if page, next, err = a.Audit.List(ctx, c.Caller, q); err != nil {
			return httpapi.Cause(ctx, err)
		}
	}
	if err := w.end(); err != nil {
		return err
	}
	return buffered.Flush()
}

// rowWriter writes rows in a format.
type rowWriter interface {
	row(logRow) error
	end() error
}

func rowsAs(format string, w io.Writer) rowWriter {
	if format == formatCSV {
		return &csvRows{w: csv.NewWriter(w)}
	}
	return &jsonRows{w: w}
}

type jsonRows struct {
	w     io.Writer
	begun bool
}

func (j *jsonRows) row(r logRow) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	before := ","
	if !j.begun {
		before, j.begun = "[", true
	}
	_, err = j.w.Write(append([]byte(before), text...))
	return err
}

func (j *jsonRows) end() error {
	last := "]\n"
	if !j.begun {
		last = "[]\n"
	}
	_, err := io.WriteString(j.w, last)
	return err
}

type csvRows struct {
	w     *csv.Writer
	begun bool
}

func (c *csvRows) row(r logRow) error {
	if err := c.head(); err != nil {
		return err
	}
	exit, metadata := "", "{}"
	if r.ExitCode != nil {
		exit = strconv.Itoa(*r.ExitCode)
	}
	if text, err := json.Marshal(r.Metadata); err == nil {
		metadata = string(text)
	}
	row := []string{
		r.ID, r.CreatedAt.Format(time.RFC3339Nano), r.SandboxID, r.UserName, r.ToolName, r.Status, r.Command, exit, strconv.FormatFloat(r.LatencyMS, 'f', -1, 64), r.Stdout, r.Stderr, r.Error, metadata,
	}
	for i := range row {
		row[i] = plainCell(row[i])
	}
	return c.w.Write(row)
}

func (c *csvRows) head() error {
	if c.begun {
		return nil
	}
	c.begun = true
	return c.w.Write([]string{"id", "created_at", "sandbox_id", "user_name", "tool_name", "status", "command", "exit_code", "latency_ms", "stdout", "stderr", "error", "metadata"})
}

func (c *csvRows) end() error {
	if err := c.head(); err != nil {
		return err
	}
	c.w.Flush()
	return c.w.Error()
}

// plainCell has a spreadsheet take a text as text, which it takes for a formula where it begins with one of these.
func plainCell(s string) string {
	if s != "" && (s[0] == '=' || s[0] == '+' || s[0] == '-' || s[0] == '@' || s[0] == '\t' || s[0] == '\r') {
		return "'" + s
	}
	return s
}
