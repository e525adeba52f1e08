run ->(_environment) { [200, { "content-type" => "text/plain" }, ["Hello from Ruby\n"]] }
