// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"sandpit.dev/internal/programs"
)

// GVisorClass is the runtime class of pods on gVisor.
const GVisorClass = "gvisor"

// giveGVisor has the first node run pods of gVisor's class, whose programs are found, or built.
func giveGVisor(ctx context.Context, dir string, p *programs.Finder) error {
	parts, err := partsOf("gvisor", build{"gvisor", "0", nil, []string{"gvisor.dev/gvisor/runsc", "./containerd-shim-runsc-v1"}})
	if err != nil {
		return err
	}
	kit, err := p.Find(ctx, "runsc", parts)
	if err != nil {
		return err
	}
	settings := filepath.Join(dir, "runsc.toml")
	return errors.Join(
		os.WriteFile(settings, []byte("binary_name = \""+kit.Path("runsc")+"\"\n[runsc_config]\n  platform = \"systrap\"\n"), 0o600),
		appendTo(filepath.Join(dir, "containerd.toml"), `  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runsc]
    runtime_type = "io.containerd.runsc.v1"
    runtime_path = "`+kit.Path("containerd-shim-runsc-v1")+`"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runsc.options]
      TypeUrl = "io.containerd.runsc.v1.options"
      ConfigPath = "`+settings+`"
`),
		appendTo(filepath.Join(dir, "objects.yaml"), `---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: `+GVisorClass+`}
handler: runsc
`))
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
