import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

/**
 * Opens JMX as the first argument says, and runs the main class that the second names.
 *
 * The JVM's own option would open a second port beside it, on all interfaces.
 */
public class LoopbackJMX {
    public static void main(String[] words) throws Throwable {
        Method start = Class.forName("jdk.internal.agent.Agent")
                .getDeclaredMethod("startRemoteManagementAgent", String.class);
        start.setAccessible(true);
        start.invoke(null, words[0]);
        try {
            Class.forName(words[1]).getMethod("main", String[].class)
                    .invoke(null, (Object) new String[0]);
        } catch (InvocationTargetException error) {
            throw error.getCause();
        }
    }
}
