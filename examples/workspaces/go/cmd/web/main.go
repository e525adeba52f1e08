package main

import (
	"fmt"
	"log"
	"net/http"
	"os"

	"example.com/shop/greeting"
)

func main() {
	http.HandleFunc("/", func(answer http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(answer, greeting.From("one of several programs"))
	})
	log.Fatal(http.ListenAndServe(":"+os.Getenv("PORT"), nil))
}
