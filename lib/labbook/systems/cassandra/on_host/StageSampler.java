import java.io.PrintWriter;
import java.lang.management.ManagementFactory;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.List;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/**
 * Writes how many tasks work and wait in Cassandra's stages, and runs the main class that it names.
 *
 * Arguments: file, ms between two samples, main class. A line a sample: ms since 1970, then
 * STAGE:active:waiting for each stage that has any. It asks within the JVM, so no port is open.
 * After an error the last line is "# " and the error, which the node's own log has, too.
 */
public class StageSampler {
    static final int LOOK_EVERY = 20;   // samples between two looks for new stages

    public static void main(String[] words) throws Throwable {
        PrintWriter out = new PrintWriter(words[0]);
        long every = Long.parseLong(words[1]);
        Thread sampler = new Thread(() -> sample(out, every), "stage-sampler");
        sampler.setDaemon(true);
        sampler.start();
        try {
            Class.forName(words[2]).getMethod("main", String[].class)
                    .invoke(null, (Object) new String[0]);
        } catch (InvocationTargetException error) {
            throw error.getCause();
        }
    }

    static void sample(PrintWriter out, long every) {
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        List<ObjectName> stages = new ArrayList<>();
        try {
            for (int i = 0; true; i++) {
                if (i % LOOK_EVERY == 0) {
                    stages = stages(server);
                }
                StringBuilder line = new StringBuilder().append(System.currentTimeMillis());
                for (ObjectName stage : stages) {
                    add(line, server, stage);
                }
                out.println(line);
                if (out.checkError()) {     // which flushes it
                    throw new IllegalStateException("the samples cannot be written");
                }
                Thread.sleep(every);
            }
        } catch (Throwable end) {
            out.println("# " + end);
            out.flush();
            System.err.println("stage-sampler: " + end);
        }
    }

    /** Of the papers' versions a bean is a stage; of today's, a bean is one number of a stage. */
    static List<ObjectName> stages(MBeanServer server) throws JMException {
        List<ObjectName> found = new ArrayList<>();
        for (String path : new String[] {"request", "internal"}) {
            found.addAll(server.queryNames(new ObjectName("org.apache.cassandra." + path + ":type=*"), null));
        }
        found.addAll(server.queryNames(new ObjectName(
                "org.apache.cassandra.metrics:type=ThreadPools,name=PendingTasks,*"), null));
        return found;
    }

    static void add(StringBuilder line, MBeanServer server, ObjectName bean) {
        try {
            boolean today = bean.getKeyProperty("name") != null;
            long active = today ? number(server, active(bean), "Value") : number(server, bean, "ActiveCount");
            long waiting = today ? number(server, bean, "Value")
                    : Math.max(number(server, bean, "PendingTasks") - active, 0);   // theirs counts active ones, too
            if (active + waiting > 0) {
                line.append(' ').append(bean.getKeyProperty(today ? "scope" : "type"))
                        .append(':').append(active).append(':').append(waiting);
            }
        } catch (JMException | ClassCastException gone) {
            // a bean that is no stage, or is no more
        }
    }

    static ObjectName active(ObjectName pending) throws JMException {
        return new ObjectName(pending.toString().replace("name=PendingTasks", "name=ActiveTasks"));
    }

    static long number(MBeanServer server, ObjectName bean, String name) throws JMException {
        return ((Number) server.getAttribute(bean, name)).longValue();
    }
}
