// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/kubernetes/kubeapi"
)

// rights are what the server does in its namespace.
func (d *Driver) rights() []kubeapi.Right {
	var out []kubeapi.Right
	for _, r := range []struct{ group, resource, verbs string }{
		{"", "pods", "create get list watch delete"}, {"", "persistentvolumeclaims", "create get list delete"}, {"networking.k8s.io", "networkpolicies", "create patch"},
	} {
		for verb := range strings.FieldsSeq(r.verbs) {
			out = append(out, kubeapi.Right{Verb: verb, Group: r.group, Resource: r.resource})
		}
	}
	out = append(out, kubeapi.Right{Verb: "get", Resource: "pods", Subresource: "log"}, kubeapi.Right{Verb: "patch", Resource: "pods", Subresource: "resize"})
	if !d.o.Direct {
		out = append(out, kubeapi.Right{Verb: "get", Resource: "pods", Subresource: "portforward"})
	}
	return out
}

// lacking returns the rights that the server's account lacks, in words.
func (d *Driver) lacking(ctx context.Context) (missing []string, err error) {
	for _, r := range d.rights() {
		may, err := d.api.May(ctx, d.space, r)
		if err != nil {
			return nil, err
		}
		if !may {
			missing = append(missing, r.String())
		}
	}
	return missing, nil
}

// Probe says what the cluster can.
func (d *Driver) Probe(ctx context.Context) (runtime.Capabilities, error) {
	if err := d.learn(ctx); err != nil {
		return nil, err
	}
	missing, err := d.lacking(ctx)
	if err != nil {
		return nil, err
	}
	no := func(remedy, format string, args ...any) error {
		return fault.New(fault.Unsupported, format, args...).WithRemedy("%s", remedy)
	}
	if len(missing) > 0 {
		out := runtime.Capabilities{}
		for _, f := range runtime.Features() {
			out[f] = no("grant it by a role and a binding: docs/kubernetes.md has them", "the server's account may not, in the namespace %s: %s", d.space, strings.Join(missing, ", "))
		}
		return out, nil
	}
	network := d.networks(ctx)
	if network != nil && !fault.Is(network, fault.Unsupported) {
		return nil, network
	}
	keeps := "it is proven that the cluster's network keeps to its policies"
	if proof := d.lastProof(); proof != nil {
		keeps = "it is not proven that the cluster's network keeps to its policies (" + fault.As(proof).Message + ")"
		if fault.Is(proof, fault.Unsupported) && network == nil {
			network = proof
		}
	}
	roots := d.rootsKept(ctx)
	if roots != nil && !fault.Is(roots, fault.Unsupported) {
		return nil, roots
	}
	leases, err := d.lackingLeases(ctx)
	if err != nil {
		return nil, err
	}
	if may, err := d.api.May(ctx, d.space, eventsRight()); err != nil {
		return nil, err
	} else if !may {
		keeps += "; who holds a disk that does not come is not told: the server's account may not, in the namespace " + d.space + ": " + eventsRight().String()
	}
	if len(leases) > 0 {
		keeps += "; that a node is lost is told after 50 s, and not within half a minute: the server's account may not, in the namespace " + kubeapi.NodeLeases + ": " + strings.Join(leases, ", ")
	}
	const other = "use the native runtime"
	return runtime.Capabilities{
		runtime.Isolation:      d.isolates(keeps),
		runtime.LimitCPU:       nil,
		runtime.LimitMemory:    nil,
		runtime.LimitSockets:   no(other, "the kubernetes runtime does not have the cluster count what sockets hold"),
		runtime.LimitPids:      no("set podPidsLimit of the cluster's kubelets", "a pod has no limit of processes of its own"),
		runtime.LimitDisk:      no("choose a class whose volumes are disks of a size", "whether a claim's size is a limit is its class's to say, and it does not say it"),
		runtime.KillTree:       nil,
		runtime.TrackChanges:   nil,
		runtime.WatchFiles:     nil,
		runtime.RootUser:       nil,
		runtime.Sudo:           no("run commands with user root, or use the native runtime", "the agent has no cgroups in a pod, and cannot start a command of root's among the processes of the one that asks for it, with which it would have to end"),
		runtime.RootDisk:       roots,
		runtime.Reopen:         nil,
		runtime.Pause:          no("stop it instead: start has another pod on the same claim", "Kubernetes has no way to pause a pod"),
		runtime.Resize:         nil,
		runtime.Snapshots:      nil,
		runtime.CheapSnapshots: no(other, "a pod's disk is copied to the server as a stream, while all processes in it stand still, and back"),
		runtime.Volumes:        nil,
		runtime.VolumeParts:    nil,
		runtime.Network:        network,
	}, nil
}
