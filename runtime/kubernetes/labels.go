// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"maps"

	"sandpit.dev/sandbox"
)

// Labels and annotations of what is ours.
const (
	labelServer     = "sandpit.dev/server"  // namespace of the server that made it
	labelSandbox    = "sandpit.dev/sandbox" // id
	labelVolume     = "sandpit.dev/volume"  // of claims: id
	labelProbe      = "sandpit.dev/probe"   // of pods that try what the network lets through: namespace of the server that made it
	annotationImage = "sandpit.dev/image"   // digest of the image that the disk began with
	// annotationReader is of a pod that has nothing but the agent, and reads the disk of a sandbox that is down.
	annotationReader = "sandpit.dev/reader"
	// annotationRoot is of a claim that the sandbox's whole root is on.
	annotationRoot = "sandpit.dev/root"
	// annotationProject is no label, since a project's name may be none that a label has.
	annotationProject = "sandpit.dev/project"
)

// ours selects what this server made.
func (d *Driver) ours() string { return labelServer + "=" + d.namespace + "," + labelSandbox }

// mountLabel is of pods that have a volume.
func mountLabel(id sandbox.ID) string { return "volume.sandpit.dev/" + string(id) }

// mounted is the value of such a label.
const mounted = "mounted"

func (d *Driver) labels(id sandbox.ID) map[string]string {
	all := map[string]string{labelServer: d.namespace, labelSandbox: string(id)}
	maps.Copy(all, d.o.Placement.Labels)
	return all
}

// objectName is that of a sandbox's pod, and of its claim. Nothing is looked for by it but what has the labels, too.
func objectName(id sandbox.ID) string { return "sandbox-" + string(id) }
