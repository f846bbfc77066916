// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package policies enforces a test cluster's NetworkPolicies on the node that it runs on. It
// writes one nftables table of what the API says, anew at each change: IPv4, by the pods'
// addresses. A connection that is established is not cut.
package policies

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	networklisters "k8s.io/client-go/listers/networking/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// together is how long enforce waits for further changes before it writes a table: a pod that starts makes several, each table costs a process,
// and no event says that it is the last.
const together = 5 * time.Millisecond

// Main is the program. It returns what the program ends with.
func Main(args []string) int {
	flags := flag.NewFlagSet("policies", flag.ExitOnError)
	path := flags.String("kubeconfig", "", "how the API server is reached")
	_ = flags.Parse(args) // it ends the program
	if err := enforce(context.Background(), *path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// state is what the API says.
type state struct {
	pods       corelisters.PodLister
	namespaces corelisters.NamespaceLister
	policies   networklisters.NetworkPolicyLister
}

// enforce keeps the table as the API says, until ctx ends.
func enforce(ctx context.Context, path string) error {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	f := informers.NewSharedInformerFactory(client, 0)
	s := state{f.Core().V1().Pods().Lister(), f.Core().V1().Namespaces().Lister(), f.Networking().V1().NetworkPolicies().Lister()}
	changed := make(chan struct{}, 1)
	mark := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	h := cache.ResourceEventHandlerFuncs{AddFunc: func(any) { mark() }, UpdateFunc: func(any, any) { mark() }, DeleteFunc: func(any) { mark() }}
	for _, i := range []cache.SharedIndexInformer{f.Core().V1().Pods().Informer(), f.Core().V1().Namespaces().Informer(), f.Networking().V1().NetworkPolicies().Informer()} {
		if _, err := i.AddEventHandler(h); err != nil {
			return err
		}
	}
	f.Start(ctx.Done())
	f.WaitForCacheSync(ctx.Done())
	last := ""
	for {
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case <-time.After(together):
		case <-ctx.Done():
			return ctx.Err()
		}
		table, err := s.table()
		if err != nil {
			return err
		}
		if table == last {
			continue
		}
		nft := exec.CommandContext(ctx, "nft", "-f", "-")
		nft.Stdin = strings.NewReader(table)
		if out, err := nft.CombinedOutput(); err != nil {
			return fmt.Errorf("nft: %w: %s\n%s", err, out, table)
		}
		last = table
	}
}

// isolated reports whether policies hold for a pod: it has an address of its own.
func isolated(p *corev1.Pod) bool {
	return p.Status.PodIP != "" && !p.Spec.HostNetwork && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

// table returns all rules. A rule for what goes out returns, so that the other end's rules for what
// comes in are asked too. What the node itself sends to its pods is not in either: the API demands that.
func (s state) table() (string, error) {
	pods, err := s.pods.List(labels.Everything())
	if err != nil {
		return "", err
	}
	var chains, in, out strings.Builder
	for _, p := range pods {
		if !isolated(p) {
			continue
		}
		r, err := s.rules(p)
		if err != nil {
			return "", err
		}
		name := strings.ReplaceAll(p.Status.PodIP, ".", "_")
		if r.limitsIn {
			fmt.Fprintf(&chains, "  chain in_%s {\n%s    drop\n  }\n", name, r.in)
			fmt.Fprintf(&in, "    ip daddr %s jump in_%s\n", p.Status.PodIP, name)
		}
		if r.limitsOut {
			fmt.Fprintf(&chains, "  chain out_%s {\n%s    drop\n  }\n", name, r.out)
			fmt.Fprintf(&out, "    ip saddr %s jump out_%s\n", p.Status.PodIP, name)
		}
	}
	const text = `table ip sandpit_policies
delete table ip sandpit_policies
table ip sandpit_policies {
%s  chain forward {
    type filter hook forward priority -5; policy accept;
    ct state established,related accept
%s%s  }
  chain input {
    type filter hook input priority -5; policy accept;
    ct state established,related accept
%s  }
}
`
	return fmt.Sprintf(text, chains.String(), out.String(), in.String(), out.String()), nil
}

// rules are those of one pod, as lines of nftables.
type rules struct {
	in, out             string
	limitsIn, limitsOut bool
}

// rules returns what the policies say of a pod.
func (s state) rules(p *corev1.Pod) (r rules, err error) {
	policies, err := s.policies.NetworkPolicies(p.Namespace).List(labels.Everything())
	if err != nil {
		return r, err
	}
	for _, policy := range policies {
		if !selector(&policy.Spec.PodSelector).Matches(labels.Set(p.Labels)) {
			continue
		}
		for _, kind := range policy.Spec.PolicyTypes {
			switch kind {
			case networkv1.PolicyTypeIngress:
				r.limitsIn = true
				for _, rule := range policy.Spec.Ingress {
					r.in += lines(s.peers(p.Namespace, "saddr", rule.From), ports(rule.Ports, p), "accept")
				}
			case networkv1.PolicyTypeEgress:
				r.limitsOut = true
				for _, rule := range policy.Spec.Egress {
					r.out += lines(s.peers(p.Namespace, "daddr", rule.To), ports(rule.Ports, nil), "return")
				}
			}
		}
	}
	return r, nil
}

func lines(peers, ports []string, verdict string) string {
	var b strings.Builder
	for _, peer := range peers {
		for _, port := range ports {
			fmt.Fprintf(&b, "    %s%s%s\n", peer, port, verdict)
		}
	}
	return b.String()
}
