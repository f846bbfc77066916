// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"cmp"
	"log/slog"
	"net/http"
	"path/filepath"
	"time"

	"sandpit.dev/api/filelink"
	"sandpit.dev/api/guard"
	apiruns "sandpit.dev/api/runs"
	"sandpit.dev/fault"
	"sandpit.dev/runs"
)

// RunsConfig bounds what is kept of runs; zero fields take the value named behind them.
type RunsConfig struct {
	Keep time.Duration `yaml:"keep"` // after a run's end: 168h
	Most int           `yaml:"most"` // of a project: 10000
	// OutputMB is the output of all runs together: 2048; the oldest that have ended go first.
	OutputMB int `yaml:"output_mb"`
	// Artifacts are bounded a run, and in all.
	Artifacts ArtifactsConfig `yaml:"artifacts"`
	Defaults  RunDefaults     `yaml:"defaults"`
}

// ArtifactsConfig bounds the files that are copied out of sandboxes after runs.
type ArtifactsConfig struct {
	Dir       string `yaml:"dir"`         // artifacts, in the data directory
	MaxMB     int    `yaml:"max_mb"`      // of a run: 256
	MaxFileMB int    `yaml:"max_file_mb"` // of a file: 64
	MaxFiles  int    `yaml:"max_files"`   // of a run: 5000
	TotalMB   int    `yaml:"total_mb"`    // of all runs: 10240; the oldest go first
}

func (c RunsConfig) check() error {
	if c.Keep < 0 {
		return fault.InvalidField("runs.keep", "%v is less than nothing", c.Keep)
	}
	for name, n := range map[string]int{
		"runs.most": c.Most, "runs.output_mb": c.OutputMB, "runs.artifacts.max_mb": c.Artifacts.MaxMB, "runs.artifacts.max_file_mb": c.Artifacts.MaxFileMB,
		"runs.artifacts.max_files": c.Artifacts.MaxFiles, "runs.artifacts.total_mb": c.Artifacts.TotalMB,
	} {
		if n < 0 || n > 1<<30 {
			return fault.InvalidField(name, "%d is outside 0 to %d", n, 1<<30)
		}
	}
	return c.Defaults.check()
}

// artifactsDir is the directory in the data directory that holds artifacts.
const artifactsDir = "artifacts"

func (c Config) artifactsDir() string {
	return cmp.Or(c.Runs.Artifacts.Dir, filepath.Join(c.Data, artifactsDir))
}

func (c Config) runs(log *slog.Logger, m *runs.Metrics) runs.Options {
	a := c.Runs.Artifacts
	return runs.Options{
		Defaults: c.Runs.Defaults.runs(),
		Logger:   log, Metrics: m, Keep: c.Runs.Keep, Most: c.Runs.Most, MaxOutput: int64(c.Runs.OutputMB) << 20,
		Artifacts: runs.ArtifactOptions{
			Dir: c.artifactsDir(), MaxBytes: int64(a.MaxMB) << 20, MaxFileBytes: int64(a.MaxFileMB) << 20,
			MaxFiles: a.MaxFiles, Total: int64(a.TotalMB) << 20,
		},
	}
}

// newArtifacts serves artifacts to holders of a token or of a link.
func newArtifacts(g *guard.Guard, runner *runs.Runner, files *filelink.Links) http.Handler {
	h := &apiruns.Handler{Artifacts: artifactsByLink{runner}, Links: files, Caller: guard.Caller, Refuse: guard.Error}
	byToken, open := g.Wrap("artifacts", h), g.WrapLink(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Pattern = "GET " + apiruns.Root + "{identifier}/{run}/{path...}" // for the figures
		if apiruns.IsLink(r) {
			open.ServeHTTP(w, r)
			return
		}
		byToken.ServeHTTP(w, r)
	})
}
