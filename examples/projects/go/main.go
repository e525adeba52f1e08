package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
)

func main() {
	http.HandleFunc("/", func(answer http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(answer, "Hello from Go")
	})
	log.Fatal(http.ListenAndServe(":"+os.Getenv("PORT"), nil))
}
