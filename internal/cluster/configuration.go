// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// configurations are the files that the components of a node read, by their names. DIR is the node's directory, BIN
// that of the programs, SUBNET where its pods have addresses, and LEASE how many seconds its lease is good for.
var configurations = map[string]string{
	"network/10-bridge.conflist": `{"cniVersion":"1.0.0","name":"pods","plugins":[{"type":"bridge","bridge":"cni0","isGateway":true,"hairpinMode":true,
"ipam":{"type":"host-local","ranges":[[{"subnet":"SUBNET"}]],"routes":[{"dst":"0.0.0.0/0"}]}}]}
`,
	// restrict_oom_score_adj: a host may not let root lower it.
	"containerd.toml": `version = 3
root = "DIR/containerd"
state = "/run/containerd"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "localhost/pause:1"
[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = "DIR/registries"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["BIN"]
    conf_dir = "DIR/network"
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = "BIN/runc"
      SystemdCgroup = false
`,
	// One of the node's own is spoken to over http at any of its addresses.
	"registries/" + Registry + "/hosts.toml": "server = \"http://" + Registry + "\"\n",
	"kubelet.yaml": `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
clusterDNS: [ADDRESS]
clusterDomain: cluster.local
resolvConf: DIR/resolv.conf
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: DIR/pki/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: DIR/pki/kubelet.crt
tlsPrivateKeyFile: DIR/pki/kubelet.key
evictionHard: {memory.available: "100Mi", nodefs.available: "1%", imagefs.available: "1%"}
imageGCHighThresholdPercent: 100
maxPods: 250
nodeLeaseDurationSeconds: LEASE
`,
	"resolv.conf": "nameserver 127.0.0.1\n",
	"proxy.yaml": `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clusterCIDR: 10.244.0.0/16
clientConnection: {kubeconfig: DIR/pki/proxy.kubeconfig}
conntrack: {maxPerCore: 0, min: 0}
`,
	"Corefile": `.:53 {
  errors
  kubernetes cluster.local {
    kubeconfig DIR/pki/admin.kubeconfig test
    pods verified
  }
  cache 5
}
`,
	"objects.yaml": `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: standard
  annotations: {storageclass.kubernetes.io/is-default-class: "true"}
provisioner: kubernetes.io/host-path
`,
}

// configure writes them.
func configure(dir, bin, subnet string, lease time.Duration) error {
	for name, text := range configurations {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		text = strings.NewReplacer("DIR", dir, "BIN", bin, "SUBNET", subnet, "LEASE", strconv.Itoa(int(lease.Seconds())), "ADDRESS", Address).Replace(text)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}
