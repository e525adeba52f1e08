// Command all-in-one runs the Kubernetes component that its first argument names; tests start a whole cluster from this one program.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	components := map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllers.NewControllerManagerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
		"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
		"kube-proxy":              proxy.NewProxyCommand,
	}
	os.Args = os.Args[1:]
	if len(os.Args) > 0 && os.Args[0] == "coredns" {
		coremain.Run()
		return
	}
	if len(os.Args) == 0 || components[os.Args[0]] == nil {
		fmt.Fprintln(os.Stderr, "the first argument must be coredns, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet or kube-proxy")
		os.Exit(2)
	}
	os.Exit(cli.Run(components[os.Args[0]]()))
}
